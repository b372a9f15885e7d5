// Bundles play.jsx with the published front-end: node build.mjs FOLDER, where FOLDER has the node_modules (see README.md).
// What the front-end takes from Volto itself is replaced by the least that renders.
import { createRequire } from 'node:module';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const here = dirname(fileURLToPath(import.meta.url));
const folder = resolve(process.argv[2]);
const { build } = createRequire(join(folder, 'x.js'))('esbuild');

const STUBS = {
  registry: `
    const settings = { defaultPageSize: 25, contentTypeSearchResultIcons: {}, baseColor: '#000' };
    const SolrFormattedDate = ({ date }) => <time dateTime={date} />;
    const Image = ({ item }) => <img src={item['@id'] + '/' + item.image_scales[item.image_field][0].download} />;
    export default { settings, widgets: { SolrFormattedDate }, getComponent: () => ({ component: Image }) };`,
  'actions/vocabularies/vocabularies': `export const getVocabulary = (options) => ({ type: 'VOCABULARY', ...options });`,
  'components/theme/Icon/Icon': `export default () => null;`,
  'helpers/Url/Url': `export const flattenToAppURL = (url) => url;`,
};
const volto = {
  name: 'volto',
  setup(use) {
    use.onResolve({ filter: /^@plone\/volto\// }, ({ path }) => ({ path: path.slice(13), namespace: 'volto' }));
    use.onLoad({ filter: /.*/, namespace: 'volto' }, ({ path }) => ({
      contents: STUBS[path] ?? 'export default null;', loader: 'jsx', resolveDir: folder,
    }));
  },
};
await build({
  entryPoints: [join(here, 'play.jsx')],
  outfile: join(folder, 'play.cjs'),
  bundle: true,
  platform: 'node',
  jsx: 'automatic',
  loader: { '.js': 'jsx', '.svg': 'empty', '.less': 'empty' },
  nodePaths: [join(folder, 'node_modules')],
  alias: { 'volto-solr': join(folder, 'node_modules/@kitconcept/volto-solr/src') },
  plugins: [volto],
});
