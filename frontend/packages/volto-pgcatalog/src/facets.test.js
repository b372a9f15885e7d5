import { GET_QUERYSTRING_RESULTS } from '@plone/volto/constants/ActionTypes';
import { getQueryStringResults } from '@plone/volto/actions/querystringsearch/querystringsearch';
import config from '@plone/volto/registry';
import {
  SHOWN,
  askForFacets,
  countedChoices,
  countedIndexes,
  facetCounts,
  facetOf,
  facetsOfBlock,
  withSeparateNames,
} from './facets';

const facet = (value, type) => ({ field: { value }, type });
const named = (values, trees = []) => ({ values, trees });

// What a search block of Volto dispatches, by GET where the site wants that.
const search = (block, op = 'post') => {
  config.settings = { defaultPageSize: 25, querystringSearchGet: op === 'get' };
  const query = { query: [{ i: 'path', v: '/ä?&' }], b_size: 10 };
  return getQueryStringResults('/page', query, block);
};

// What the rest of the store gets to see of `actions`.
const passed = (...actions) => {
  const next = jest.fn((action) => action);
  const dispatch = askForFacets()(next);
  actions.forEach((action) => dispatch(action));
  return next.mock.calls.map(([action]) => action);
};

const asked = ({ request }) =>
  request.data
    ? request.data
    : JSON.parse(decodeURIComponent(request.path.split('?query=')[1]));

describe('countedIndexes', () => {
  it('names the indexes of widgets with values, once each', () => {
    const facets = [
      facet('Subject', 'selectFacet'),
      facet('portal_type', 'checkboxFacet'),
      facet('Subject'),
      facet('effective', 'daterangeFacet'),
      facet('is_folderish', 'toggleFacet'),
      { type: 'selectFacet' },
      facet('facet.path', 'pgcatalogTree'),
    ];
    expect(countedIndexes({ facets })).toEqual({
      values: ['Subject', 'portal_type'],
      trees: ['path'],
    });
  });
  it.each([[undefined], [{}], [{ facets: null }]])('takes %j', (data) => {
    expect(countedIndexes(data)).toEqual({ values: [], trees: [] });
    expect(withSeparateNames(data)).toBe(data);
  });
});

describe('askForFacets', () => {
  it.each(['get', 'post'])('adds the facets of the block to a %s', (op) => {
    const [action] = passed(facetsOfBlock('a', named(['Subject'])), search('a', op));
    expect(action.request.op).toBe(op);
    const { facets, ...others } = asked(action);
    expect(facets).toEqual(['Subject']);
    expect(others).toEqual(asked(search('a', op)));
    expect(action.subrequest).toBe('a');
  });
  it.each(['get', 'post'])('takes chosen places and years from a %s', (op) => {
    const { facets } = withSeparateNames({
      facets: [facet('path', 'pgcatalogTree'), facet('Date', 'pgcatalogTree')],
    });
    const names = countedIndexes({ facets });
    const plain = search('a', op);
    const row = { i: facets[0].field.value, o: 'any', v: ['/plone/news'] };
    config.settings.querystringSearchGet = op === 'get';
    const query = { query: [...asked(plain).query, row], b_size: 10 };
    const [action] = passed(
      facetsOfBlock('a', names),
      getQueryStringResults('/page', query, 'a'),
    );
    const { page_facets: chosen, ...others } = asked(action);
    expect(chosen).toEqual({ path: ['/plone/news'], Date: [] });
    expect(others).toEqual(asked(plain));
  });
  it('knows each block of a page by itself', () => {
    const actions = passed(
      facetsOfBlock('a', named(['Subject'])),
      facetsOfBlock('b', named(['portal_type'])),
      search('b'),
      search('a'),
      search('listing'),
    );
    expect(actions.map((action) => asked(action).facets)).toEqual([
      ['portal_type'],
      ['Subject'],
      undefined,
    ]);
  });
  it('asks once more when the facets of a block change, and only then', () => {
    const actions = passed(
      facetsOfBlock('a', named(['Subject'])),
      search('a'),
      facetsOfBlock('a', named(['Subject'])),
      facetsOfBlock('a', named(['Subject', 'Creator'])),
      facetsOfBlock('a', named([])),
    );
    expect(actions.map((action) => asked(action).facets)).toEqual([
      ['Subject'],
      ['Subject', 'Creator'],
    ]);
  });
  it('leaves everything else alone', () => {
    const others = [
      search('a'),
      { type: 'SEARCH_CONTENT', subrequest: 'a', request: { op: 'get' } },
      { type: `${GET_QUERYSTRING_RESULTS}_SUCCESS`, subrequest: 'a' },
    ];
    expect(passed(facetsOfBlock('b', named(['Subject'])), ...others)).toEqual(others);
  });
  it('remembers nothing of other stores', () => {
    passed(facetsOfBlock('a', named(['Subject'])));
    expect(passed(search('a'))).toEqual([search('a')]);
  });
});

describe('facetCounts', () => {
  const answer = (subrequest, facets) => ({
    type: `${GET_QUERYSTRING_RESULTS}_SUCCESS`,
    subrequest,
    result: { items: [], facets },
  });
  it('keeps the counts of each block', () => {
    const state = [
      answer('a', { Subject: { data: { red: 1 } } }),
      answer('b', undefined),
      { type: `${GET_QUERYSTRING_RESULTS}_PENDING`, subrequest: 'a' },
      answer(undefined, { Subject: {} }),
    ].reduce(facetCounts, undefined);
    expect(state).toEqual({
      a: { counts: { Subject: { data: { red: 1 } } }, trees: [] },
      b: { counts: null, trees: [] },
    });
  });
});

describe('countedChoices', () => {
  const choices = ['blue', 'green', 'red'].map((value) => ({
    value,
    label: value.toUpperCase(),
  }));
  const data = { red: 7, blue: 2, black: 1 };
  const labels = (...args) =>
    countedChoices(...args).map(({ title, count }) =>
      count === null ? title : `${title} (${count})`,
    );

  it('has the most frequent first, and nothing without a hit', () => {
    expect(labels(choices, { data })).toEqual(['RED (7)', 'BLUE (2)']);
  });
  it('calls what has no label by its value', () => {
    const anna = [{ value: 'anna', label: '' }];
    expect(labels(anna, { data: { anna: 15 } })).toEqual(['anna (15)']);
    expect(labels(anna, { data: {}, truncated: true })).toEqual(['anna']);
  });
  it('keeps what is chosen', () => {
    expect(labels(choices, { data }, ['green'])).toEqual([
      'RED (7)',
      'BLUE (2)',
      'GREEN (0)',
    ]);
  });
  it('keeps what was not counted, without a number', () => {
    expect(labels(choices, { data, truncated: true })).toEqual([
      'RED (7)',
      'BLUE (2)',
      'GREEN',
    ]);
  });
  it('takes the values from the counts where Volto knows none', () => {
    expect(labels([], { data }, ['red', 'old'])).toEqual([
      'red (7)',
      'blue (2)',
      'black (1)',
      'old (0)',
    ]);
  });
  it('offers nothing that the block itself excludes', () => {
    expect(labels([], { data }, [], ['blue'])).toEqual(['blue (2)']);
  });
  it('is not confused by names that every object has', () => {
    expect(labels([{ value: 'constructor', label: 'x' }], { data })).toEqual([]);
  });
});

it('shows six values of a facet at first, and what is chosen', () => {
  const values = [...'abcdefghij'].map((value) => ({ value }));
  const first = (chosen) => {
    const { shown, values: all } = facetOf(values, chosen);
    expect(all).toHaveLength(values.length);
    return all.slice(0, shown).map(({ value }) => value).join('');
  };
  expect(SHOWN).toBe(6);
  expect(first([])).toBe('abcdef');
  expect(first(['j'])).toBe('abcdej');
  expect(first([...'defghij'])).toBe('defghij');
});
