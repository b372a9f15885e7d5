// Prints the requests that @plone/client sends for searches with additions, and what it makes of the answer given on stdin.
// node play.mjs FOLDER, a folder with node_modules; see README.md.
import { createServer } from 'node:http';
import { readFileSync } from 'node:fs';
import { pathToFileURL } from 'node:url';

const { default: PloneClient } = await import(
  pathToFileURL(`${process.argv[2]}/node_modules/@plone/client/dist/index.js`)
);
const answer = readFileSync(0);
const requests = [];

const server = createServer((request, response) => {
  requests.push(request.url);
  response.setHeader('Content-Type', 'application/json');
  response.end(answer);
}).listen(0, '127.0.0.1', async () => {
  const apiPath = `http://127.0.0.1:${server.address().port}`;
  const client = PloneClient.initialize({ apiPath });
  const query = {
    SearchableText: 'needle',
    sort_on: 'getId',
    b_size: 2,
    facets: ['Subject', 'portal_type'],
    facet_ranges: JSON.stringify({ sortable_title: { 'a to p': ['a', 'q'] } }),
    snippets: 1,
    passages: 1,
    terms: 3,
  };
  const result = await client.getSearchQuery({ query }).queryFn();
  console.log(JSON.stringify({ requests, result }));
  server.close();
});
