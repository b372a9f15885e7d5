import fs from 'fs';
import path from 'path';
import { createRoot } from 'react-dom/client';
import { act } from 'react-dom/test-utils';
import { Provider } from 'react-redux';
import { IntlProvider } from 'react-intl';
import { MemoryRouter } from 'react-router-dom';
import configureStore from 'redux-mock-store';
import pageMessages from './page/messages';
import { AlsoAbout, DidYouMean, SearchHelp, Snippets } from './SearchPage';

global.IS_REACT_ACT_ENVIRONMENT = true;

const hit = (id, text) => ({
  '@id': id,
  ...(text ? { highlighting: { text: [text] } } : {}),
});

// The search page as Volto has it, with `state` in the store and the additions beside it.
const search = (state) => {
  document.body.innerHTML = `
    <div id="page-search"><header><h1>Results</h1></header><section id="content-core">
    ${(state.search?.items || [])
      .map(
        () =>
          '<article class="tileItem"><h2 class="tileHeadline"></h2><div class="tileFooter"></div></article>',
      )
      .join('')}
    </section></div><div id="root"></div>`;
  const root = createRoot(document.getElementById('root'));
  act(() =>
    root.render(
      <Provider store={configureStore()(state)}>
        <IntlProvider locale="en" onError={() => {}}>
          <MemoryRouter
            initialEntries={['/de/search?SearchableText=hegdehog&path=/de']}
          >
            <SearchHelp />
            <DidYouMean />
            <Snippets />
            <AlsoAbout />
          </MemoryRouter>
        </IntlProvider>
      </Provider>,
    ),
  );
  return root;
};

it('leads to what was meant, in the same place', () => {
  search({ pgcatalogMeant: 'hedgehog', search: { items: [] } });
  const meant = document.querySelector('#page-search header .did-you-mean');
  expect(meant.textContent).toBe('Did you mean hedgehog?');
  const address = meant.querySelector('a').getAttribute('href');
  expect(new URL(address, 'http://x').pathname).toBe('/de/search');
  expect(Object.fromEntries(new URL(address, 'http://x').searchParams)).toEqual({
    SearchableText: 'hedgehog',
    corrected_from: 'hegdehog',
    path: '/de',
  });
});

it('says nothing where nothing was meant', () => {
  search({ pgcatalogMeant: null, search: { items: [] } });
  expect(document.querySelector('.did-you-mean')).toBe(null);
});

it('puts each snippet into its hit', () => {
  search({
    search: { items: [hit('/a', 'a <mark>b</mark> &lt;i&gt;'), hit('/b')] },
  });
  const [first, second] = document.querySelectorAll('.tileItem');
  expect(first.querySelector('.snippet').innerHTML).toBe(
    'a <mark>b</mark> &lt;i&gt;',
  );
  expect(second.querySelector('.snippet')).toBe(null);
});

it('leads to the page of a PDF, and names the slide', () => {
  const url = '/a/@@display-file/#page=12';
  const page = { ...hit('/a', 'b'), file_page: { title: 'Page 12', url } };
  const slide = { ...hit('/b', 'b'), file_page: { title: 'Slide 3' } };
  search({ search: { items: [page, slide] } });
  const [first, second] = document.querySelectorAll('.file-page');
  expect(first.querySelector('a').getAttribute('href')).toBe(url);
  expect(second.innerHTML).toBe('Slide 3');
});

it('has titles and snippets in the direction of their text', () => {
  search({ search: { items: [hit('/a', 'a <mark>b</mark>')] } });
  const texts = document.querySelectorAll('.tileHeadline, .snippet');
  expect([...texts].map((text) => text.getAttribute('dir'))).toEqual([
    'auto',
    'auto',
  ]);
});

it('has near pages behind the hits, with their passages', () => {
  const near = { ...hit('/c', 'a <mark>passage</mark>'), title: 'Near' };
  search({ search: { items: [hit('/a', 'text')] }, pgcatalogAlso: [near] });
  const also = document.querySelector('#content-core > .also-about:last-child');
  expect(also.querySelector('h2').textContent).toBe('Related results');
  expect(also.querySelector('a').getAttribute('href')).toBe('/c');
  expect(also.querySelector('.snippet').innerHTML).toBe(
    'a <mark>passage</mark>',
  );
  expect(document.querySelectorAll('.snippet')).toHaveLength(2);
});

it('has no heading for near pages where there are none', () => {
  search({ search: { items: [] }, pgcatalogAlso: null });
  expect(document.querySelector('.also-about')).toBe(null);
});

it('says how words are excluded', () => {
  search({ search: { items: [] } });
  const help = document.querySelector('#page-search header .search-help');
  expect(help.textContent).toMatch('garden -fence, garden NOT fence');
});

it('takes everything away with it', () => {
  const root = search({
    pgcatalogMeant: 'b',
    pgcatalogAlso: [{ ...hit('/c', 'passage'), title: 'Near' }],
    search: { items: [hit('/a', 'text')] },
  });
  act(() => root.unmount());
  expect(document.querySelector('.pgcatalog-snippet, .did-you-mean, .search-help, .also-about')).toBe(null);
});

it('speaks German', () => {
  const locales = path.join(__dirname, '../locales');
  const read = (name) => fs.readFileSync(path.join(locales, name), 'utf8');
  const german = read('de/LC_MESSAGES/volto.po');
  const messages = read('volto.pot').match(/^msgid ".+"$/gm);
  expect(messages).toContain('msgid "Did you mean {text}?"');
  const stock = path.join('node_modules', '@plone/volto/locales/volto.pot');
  const known = [...messages, ...fs.readFileSync(stock, 'utf8').split('\n')];
  Object.values(pageMessages).forEach(({ id }) =>
    expect(known).toContain(`msgid ${JSON.stringify(id)}`),
  );
  messages.forEach((message) => {
    expect(german.split(`${message}\n`)[1]).toMatch(/^msgstr ".+"/);
  });
});
