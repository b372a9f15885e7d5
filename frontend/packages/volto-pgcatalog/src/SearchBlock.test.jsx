import { createRoot } from 'react-dom/client';
import { act } from 'react-dom/test-utils';
import { IntlProvider } from 'react-intl';
import { Provider } from 'react-redux';
import { MemoryRouter } from 'react-router-dom';
import configureStore from 'redux-mock-store';
import { treeType } from './CountedFacet';
import withFacetCounts, { withChips } from './SearchBlock';

global.IS_REACT_ACT_ENVIRONMENT = true;

const value = (name, parts = []) => ({
  value: name,
  title: name.toUpperCase(),
  count: 3,
  is_chosen: false,
  parts,
});
const TREES = [
  {
    name: 'path',
    field: 'path:list',
    title: 'Place',
    shown: 2,
    values: [value('/a', [value('/a/b')]), value('/c')],
  },
  {
    name: 'Date',
    field: 'facet.Date:list',
    title: 'Date',
    shown: 1,
    values: [value('2026', [value('2026-11')])],
  },
];
const facet = (name, type, more) => ({
  type,
  field: { value: name, label: name },
  ...more,
});
const DATA = {
  facets: [
    facet('path', 'pgcatalogTree', { title: 'Where' }),
    facet('Date', 'pgcatalogTree'),
    facet('Subject', 'checkboxFacet', { multiple: true }),
  ],
};
const querystring = { indexes: { Subject: { values: { red: { title: 'Red' } } } } };

// The layout of a block with its facets of places and years; what is set or searched for.
const shown = (facets, answer = { counts: {}, trees: TREES }, data = DATA) => {
  document.body.innerHTML = '<div id="root"></div>';
  const calls = { set: [], searched: [] };
  const setFacets = (next) => calls.set.push(next);
  const Layout = withChips(({ children, data: { facets: all } }) => (
    <>
      {all
        .filter(({ type }) => type === treeType.id)
        .map((each) => (
          <treeType.view
            facet={each}
            isEditMode={false}
            key={each.field.value}
            onChange={(name, next) => setFacets({ ...facets, [name]: next })}
            value={treeType.stateToValue({
              selectedValue: facets[each.field.value],
            })}
          />
        ))}
      {children}
    </>
  ));
  const Block = withFacetCounts((props) => (
    <Layout
      {...props}
      facets={facets}
      onTriggerSearch={(...args) => calls.searched.push(args)}
      querystring={querystring}
      searchedText="garden"
      setFacets={setFacets}
    >
      <p id="hits" />
    </Layout>
  ));
  const store = configureStore()({ pgcatalogFacets: { a: answer } });
  act(() =>
    createRoot(document.getElementById('root')).render(
      <Provider store={store}>
        <IntlProvider locale="en" onError={() => {}}>
          <MemoryRouter>
            <Block data={data} id="a" />
          </MemoryRouter>
        </IntlProvider>
      </Provider>,
    ),
  );
  return calls;
};
const texts = (css) => [...document.querySelectorAll(css)].map((e) => e.textContent);
const chips = () => texts('.pgcatalog-chips strong');
const click = (css, number = 0) =>
  act(() => document.querySelectorAll(css)[number].click());

const CHOSEN = {
  'facet.path': ['/a', '/a/b'],
  'facet.Date': ['2026', '2026-11'],
  Subject: ['red'],
};

describe('a facet of places or years', () => {
  it('has the values, titles and counts of the search page', () => {
    const { set } = shown({ 'facet.path': ['/c'] });
    expect(texts('legend')).toEqual(['Where', 'Date']);
    expect(texts('fieldset label')).toEqual(['/A3', '/A/B3', '/C3', '20263', '2026-113']);
    expect(document.querySelector('input[value="/c"]').checked).toBe(true);
    click('input[value="/a/b"]');
    click('input[value="2026"]');
    expect(set).toEqual([
      { 'facet.path': ['/c', '/a/b'] },
      { 'facet.path': ['/c'], 'facet.Date': ['2026'] },
    ]);
  });
  it('is not there without counts', () => {
    shown({}, { counts: null, trees: [] });
    expect(texts('fieldset')).toEqual([]);
  });
  it.each([
    [['/a'], { i: 'facet.path', o: expect.stringMatching(/any$/), v: ['/a'] }],
    [[], undefined],
    ['/', undefined],
    [undefined, undefined],
  ])('has the criterion of %j', (chosen, row) => {
    const facet = { field: { value: 'facet.path' } };
    expect(treeType.valueToQuery({ value: chosen, facet })).toEqual(row);
  });
  it('offers dates and the place in the editor', () => {
    const schema = { properties: { field: {} } };
    const between = ['plone.app.querystring.operation.date.between'];
    const { field } = treeType.schemaEnhancer({ schema }).properties;
    const options = { path: {}, Subject: {}, effective: { operations: between } };
    expect(Object.keys(field.filterOptions(options))).toEqual(['path', 'effective']);
  });
});

describe('chips', () => {
  it('stand for the chosen values, before the hits', () => {
    shown(CHOSEN);
    expect(chips()).toEqual(['/A', '/A/B', '2026-11', 'Red']);
    expect(texts('.pgcatalog-chips button')[3]).toBe('Remove the filter: Subject: Red ×');
    expect(document.querySelector('section + #hits')).not.toBe(null);
  });
  it.each([
    [0, { 'facet.path': [] }],
    [1, { 'facet.path': ['/a'] }],
    [2, { 'facet.Date': ['2026'] }],
    [3, { Subject: [] }],
  ])('remove number %i', (number, change) => {
    const { set, searched } = shown(CHOSEN);
    click('.pgcatalog-chips button', number);
    expect(set).toEqual([{ ...CHOSEN, ...change }]);
    expect(searched).toEqual([['garden', set[0]]]);
  });
  it('remove all', () => {
    const { set } = shown(CHOSEN);
    click('.pgcatalog-remove-all');
    expect(set).toEqual([{}]);
  });
  it.each([
    ['no counts', { counts: null, trees: [] }, DATA],
    ['facets of other kinds', undefined, { facets: [...DATA.facets, facet('end', 'daterangeFacet')] }],
  ])('are left to Volto where there are %s', (_, answer, data) => {
    shown({ Subject: ['red'] }, answer, data);
    expect(chips()).toEqual([]);
    expect(document.querySelector('.has-chips')).toBe(null);
  });
});
