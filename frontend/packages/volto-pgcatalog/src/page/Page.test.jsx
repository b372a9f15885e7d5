import { act } from 'react-dom/test-utils';
import { createRoot } from 'react-dom/client';
import { renderToString } from 'react-dom/server';
import { IntlProvider } from 'react-intl';
import { Provider } from 'react-redux';
import { MemoryRouter, Route } from 'react-router-dom';
import configureStore from 'redux-mock-store';
import config from '@plone/volto/registry';
import { SearchPage } from './Page';

global.IS_REACT_ACT_ENVIRONMENT = true;
jest.mock('@plone/volto/helpers/Helmet/Helmet', () => () => null);
jest.mock('@plone/volto/components/manage/Toolbar/Toolbar', () => () => null);

const value = (name, more) => ({
  value: name,
  title: name.toUpperCase(),
  count: 3,
  is_chosen: false,
  parts: [],
  ...more,
});
const hit = (id, more) => ({
  '@id': `http://site/${id}`,
  '@type': 'Document',
  title: id,
  type_title: 'Page',
  highlighting: { Title: [`<mark>${id}</mark> &lt;i&gt;`], text: ['a <mark>b</mark>'] },
  file_page: null,
  author: '',
  published: '',
  modified: '',
  breadcrumbs: [],
  tags: [],
  similar: '?similar=1',
  is_pinned: false,
  ...more,
});
const DATA = {
  text: 'garden',
  corrected: null,
  suggestion: null,
  has_stop_words_only: false,
  items_total: 12,
  items_total_exact: true,
  start: 0,
  size: 10,
  sizes: [10, 20],
  sort: [
    { value: 'relevance', title: 'relevance', is_chosen: true },
    { value: 'Date', title: 'date', is_chosen: false },
  ],
  items: [hit('one'), hit('two')],
  also_about: [],
  facets: [
    {
      name: 'Subject',
      field: 'Subject:list',
      title: 'Tags',
      shown: 2,
      values: [
        value('a', { is_chosen: true }),
        value('b', { count: null, parts: [value('b-1')] }),
        ...[...'cdefghijklmn'].map((name) => value(name)),
      ],
    },
  ],
  facets_follow: false,
  chips: [],
  pages: [],
  links: { as_typed: '?as_typed', suggestion: '?suggested', unfiltered: '?all', along: null, rss: 'http://site/search_rss?a=b' },
  hidden_fields: [['x', 'y']],
};

const app = (store, entry) => (
  <Provider store={store}>
    <IntlProvider locale="en" onError={() => {}}>
      <MemoryRouter initialEntries={[entry]}>
        <Route component={SearchPage} />
        <Route
          render={({ location }) => (
            <output>{`${location.pathname}${location.search}`}</output>
          )}
        />
      </MemoryRouter>
    </IntlProvider>
  </Provider>
);

const storeOf = (data, more) =>
  configureStore([() => (next) => next])({
    content: {},
    intl: { locale: 'en' },
    userSession: {},
    pgcatalogPage: { search: '', data: data && { ...DATA, ...data }, error: null, ...more },
  });

let root = null;
afterEach(() => act(() => root?.unmount()));

const shown = (data, more, entry = '/de/search?SearchableText=garden') => {
  document.body.innerHTML = '<div id="root"></div>';
  const store = storeOf(data, more);
  root = createRoot(document.getElementById('root'));
  act(() => root.render(app(store, entry)));
  return store;
};
const one = (css) => document.querySelector(css);
const texts = (css) => [...document.querySelectorAll(css)].map((e) => e.textContent);
const links = (css) =>
  [...document.querySelectorAll(css)].map((link) => link.getAttribute('href'));
const address = () => new URL(one('output').textContent, 'http://site');
const click = (element) => act(() => element.click());

beforeEach(() => {
  config.settings = {
    publicURL: 'http://site',
    apiPath: '',
    internalApiPath: '',
    contentIcons: { Document: { attributes: {} }, File: { attributes: {} }, Folder: { attributes: {} } },
    downloadableObjects: [],
    viewableInBrowserObjects: [],
    externalRoutes: [],
  };
});

describe('facets', () => {
  it('have titles, counts and parts', () => {
    shown({});
    const [first, second, part] = texts('fieldset li > label');
    expect([first, second, part]).toEqual(['A3', 'B', 'B-13']);
    expect(one('input[value="a"]').checked).toBe(true);
  });
  it('narrow the search when a value is chosen, two clicks before an answer count', () => {
    shown({});
    click(one('input[value="b-1"]'));
    click(one('input[value="c"]'));
    click(one('input[value="a"]'));
    expect(address().pathname).toBe('/de/search');
    expect([...address().searchParams]).toEqual([
      ['x', 'y'],
      ['SearchableText', 'garden'],
      ['Subject:list', 'b-1'],
      ['Subject:list', 'c'],
      ['sort_on', 'relevance'],
      ['b_size', '10'],
    ]);
  });
  it('have a field that finds a value among many', () => {
    shown({});
    const field = one('details input[type="search"]');
    act(() => {
      Object.getOwnPropertyDescriptor(HTMLInputElement.prototype, 'value').set.call(field, 'K');
      field.dispatchEvent(new Event('input', { bubbles: true }));
    });
    expect(texts('details li > label')).toEqual(['K3']);
  });
  it('are requested if they follow', () => {
    const search = '?SearchableText=garden';
    const store = shown({ facets: [], facets_follow: true });
    expect(store.getActions()).toEqual([
      expect.objectContaining({
        search,
        request: { op: 'get', path: '/de/@pgsearch?search_page=1&facets=alone&SearchableText=garden' },
      }),
    ]);
  });
  it('open in a drawer that Escape closes', () => {
    shown({ chips: [{ title: 'Tags', value: 'A', query: '?' }] });
    expect(one('.pgcatalog-opener .label').textContent).toBe('1');
    click(one('.pgcatalog-opener'));
    expect(one('[role="dialog"]').contains(document.activeElement)).toBe(true);
    act(() =>
      document.dispatchEvent(new KeyboardEvent('keydown', { key: 'Escape', bubbles: true })),
    );
    expect(one('[role="dialog"]')).toBe(null);
    expect(document.activeElement).toBe(one('.pgcatalog-opener'));
  });
});

describe('hits', () => {
  it('have marked titles and texts, and nothing that was not found', () => {
    shown({});
    expect(one('.tileHeadline a').innerHTML).toContain('<mark>one</mark> &lt;i&gt;');
    expect(texts('.snippet')).toEqual(['a b', 'a b']);
    expect(texts('.file-page, .pgcatalog-place, .pgcatalog-tags, .pgcatalog-pinned')).toEqual([]);
    expect(links('.pgcatalog-similar')[0]).toBe('/de/search?similar=1');
  });
  it('have kind, dates, place, tags and the page of a file', () => {
    const item = hit('report.pdf', {
      '@type': 'File',
      type_title: 'File',
      is_pinned: true,
      published: 'May 1',
      file_page: { title: 'Page 12', url: 'http://site/report.pdf/@@display-file/#page=12' },
      breadcrumbs: [{ '@id': 'http://site/news', title: 'News' }, { '@id': null, title: '…' }],
      tags: [...'abcdefgh'].map((title) => ({ title, query: `?Subject:list=${title}` })),
    });
    shown({ items: [item], also_about: [hit('near')] });
    expect(texts('.pgcatalog-about')).toEqual([
      'RecommendedFile · PDF · published May 1',
      'Found by meaningPage',
    ]);
    expect(links('.file-page a')).toEqual(['/report.pdf/@@display-file/#page=12']);
    expect(texts('.pgcatalog-place')).toEqual(['Located in News / …']);
    expect(links('.pgcatalog-place a')).toEqual(['/news']);
    expect(links('.pgcatalog-tags a')).toHaveLength(8);
    expect(texts('.pgcatalog-tags summary')).toEqual(['2 more']);
  });
});

describe('the page', () => {
  it.each([
    [{}, '12 results'],
    [{ items_total: 1 }, '1 result'],
    [{ items_total: 10000, items_total_exact: false }, 'More than 10,000 results'],
  ])('has the number of hits: %p', (data, text) => {
    shown(data);
    expect(one('[role="status"]').textContent).toBe(text);
  });
  it('has chips, and removes all', () => {
    const chips = [
      { title: 'Tags', value: 'A', query: '?b' },
      { title: 'Type', value: 'Page', query: '?c' },
    ];
    shown({ chips });
    expect(links('.pgcatalog-chips a')).toEqual(['/de/search?b', '/de/search?c', '/de/search?all']);
    expect(texts('.pgcatalog-chips a')[0]).toBe('Remove the filter: Tags: A ×');
  });
  it('has the feed, if the site has feeds', () => {
    shown({});
    expect(links('.pgcatalog-rss a')).toEqual(['/++api++/search_rss?a=b']);
    act(() => root.unmount());
    shown({ links: { ...DATA.links, rss: null } });
    expect(one('.pgcatalog-rss')).toBe(null);
  });
  it('has links to other pages of hits', () => {
    const page = (label, more) => ({ label, query: `?${label}`, rel: null, is_present: false, ...more });
    const pages = [page('previous', { rel: 'prev' }), page('1'), page('2', { is_present: true })];
    shown({ pages });
    expect(texts('.pgcatalog-pages a')).toEqual(['Previous page', '1', '2']);
    expect(one('.pgcatalog-pages a').rel).toBe('prev');
    expect(texts('[aria-current="page"]')).toEqual(['2']);
  });
  it.each([
    [{ corrected: 'hedgehog', text: 'hegdehog' }, '.pgcatalog-corrected', 'hegdehog', '/de/search?as_typed'],
    [{ suggestion: 'hedgehog' }, '.did-you-mean', 'hedgehog', '/de/search?suggested'],
  ])('has a way to another text: %p', (data, css, text, href) => {
    shown(data);
    expect(texts(`${css} a`)).toEqual([text]);
    expect(links(`${css} a`)).toEqual([href]);
  });
  it('sends the text, the order and the size', () => {
    shown({});
    const select = one('#pgcatalog-sort');
    act(() => {
      select.value = 'Date';
      select.dispatchEvent(new Event('change', { bubbles: true }));
    });
    expect(address().searchParams.get('sort_on')).toBe('Date');
  });
  it('has tips if nothing is found', () => {
    const chips = [{ title: 'Tags', value: 'A', query: '?b' }];
    shown({ items: [], items_total: 0, has_stop_words_only: true, chips });
    expect(texts('.pgcatalog-tips li')).toHaveLength(5);
    expect(links('.pgcatalog-tips a')).toEqual(['/de/search?all', '/de/search']);
    expect(one('#pgcatalog-sort')).toBe(null);
  });
  it('names the sites in which the search has failed', () => {
    shown({ failed_sites: ['Intranet', 'Town'] });
    expect(texts('[role="alert"]')[0]).toContain('Intranet, Town');
  });
  it('says why a search was refused', () => {
    shown(null, { error: { message: 'too long' } });
    expect(one('[role="alert"]').textContent).toContain('too long');
  });
  it('is rendered on a server, as a form and links', () => {
    const html = renderToString(app(storeOf({}), '/search?SearchableText=garden'));
    expect(html).toContain('action="/search"');
    expect(html).toContain('<noscript>');
    expect(html).toContain('name="x" value="y"');
  });
});
