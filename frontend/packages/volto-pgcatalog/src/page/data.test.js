import {
  FACETS,
  SEARCH,
  queryOf,
  rootOf,
  searchFacets,
  searchPage,
  searchPageState,
} from './data';

const action = (kind, search, more) => ({ type: `${SEARCH}_${kind}`, search, ...more });
const state = (...actions) => actions.reduce(searchPageState, undefined);

it.each([
  ['/search', ''],
  ['/de/search', '/de'],
  ['/de/search/', '/de'],
  ['/research', '/research'],
])('the root of %s is %s', (pathname, root) => {
  expect(rootOf(pathname)).toBe(root);
});

it.each([
  [searchPage, '', '/de/@pgsearch?search_page=1'],
  [searchPage, '?a=b+c%2B', '/de/@pgsearch?search_page=1&a=b%20c%2B'],
  [searchFacets, '?a=b', '/de/@pgsearch?search_page=1&facets=alone&a=b'],
])('%p requests %s', (create, search, path) => {
  const { request } = create({ pathname: '/de/search', search });
  expect(request).toEqual({ op: 'get', path });
});

describe('the state', () => {
  const data = { items: [1], facets: [], chips: [], facets_follow: true };
  const found = [action('PENDING', '?a'), action('SUCCESS', '?a', { result: data })];
  it('is the answer for the latest address', () => {
    expect(state(...found)).toEqual({ search: '?a', data, error: null, loading: false });
    const later = state(
      action('PENDING', '?a'),
      action('PENDING', '?b'),
      action('SUCCESS', '?b', { result: { items: [2] } }),
      found[1],
    );
    expect(later.data.items).toEqual([2]);
  });
  it('shows the former hits until the next ones are there', () => {
    const { data: shown, loading } = state(...found, action('PENDING', '?b'));
    expect([shown, loading]).toEqual([data, true]);
  });
  it('has the message of a refusal', () => {
    const error = { response: { body: { message: 'too long' } } };
    const failed = action('FAIL', '?b', { error });
    expect(state(...found, action('PENDING', '?b'), failed)).toMatchObject({
      data: null,
      error: { message: 'too long' },
    });
  });
  it.each([
    ['_SUCCESS', '?a', { facets: [1], chips: [2], facets_follow: false }],
    ['_SUCCESS', '?b', data],
    ['_FAIL', '?a', { facets_follow: false }],
  ])('takes the facets that follow: %s of %s', (kind, search, expected) => {
    const result = { facets: [1], chips: [2] };
    const { data: shown } = state(...found, { type: FACETS + kind, search, result });
    expect(shown).toMatchObject(expected);
    expect(shown.items).toEqual([1]);
  });
});

it('the query of a form has its values, and the text even if it is empty', () => {
  document.body.innerHTML = `<form><input name="SearchableText" value=""><input name="empty" value="">
    <input type="checkbox" name="Subject:list" value="a b" checked><input type="checkbox" name="Subject:list" value="c"></form>`;
  expect(queryOf(document.querySelector('form'))).toBe('?SearchableText=&Subject%3Alist=a+b');
});
