import { SEARCH_CONTENT } from '@plone/volto/constants/ActionTypes';
import { searchContent } from '@plone/volto/actions/search/search';
import { askForSnippets, searchAlso, searchMeant } from './search';

const passed = (action, search = '') =>
  askForSnippets({ getState: () => ({ router: { location: { search } } }) })(
    (given) => given,
  )(action);
const page = { SearchableText: 'words', use_site_search_settings: 1 };

describe('askForSnippets', () => {
  it('asks for them on the search page', () => {
    const action = searchContent('', { ...page });
    expect(passed(action).request).toEqual({
      op: 'get',
      path: `${action.request.path}&snippets=1`,
    });
  });
  it('sends the typed text with a correction', () => {
    const action = searchContent('', { ...page });
    expect(passed(action, '?corrected_from=w%26').request.path).toBe(
      `${action.request.path}&snippets=1&corrected_from=w%26`,
    );
  });
  it.each([
    ['folder contents', searchContent('/news', { SearchableText: 'words' })],
    ['a subrequest', searchContent('', { ...page }, 'links')],
    ['another action', { type: 'GET_CONTENT', request: { path: '/' } }],
    ['an answer', { type: `${SEARCH_CONTENT}_SUCCESS`, result: {} }],
  ])('leaves %s alone', (name, action) => {
    expect(passed(action)).toEqual(action);
  });
});

describe('searchMeant', () => {
  const state = (...actions) => actions.reduce(searchMeant, undefined);
  const answer = (result) => ({ type: `${SEARCH_CONTENT}_SUCCESS`, result });
  it('is what the latest search has meant', () => {
    expect(state(answer({ did_you_mean: 'words' }))).toBe('words');
    expect(state(answer({ did_you_mean: 'words' }), answer({}))).toBe(null);
    expect(
      state(answer({ did_you_mean: 'words' }), { type: `${SEARCH_CONTENT}_FAIL` }),
    ).toBe(null);
  });
  it('stays while others ask, and while the answer is awaited', () => {
    expect(
      state(
        answer({ did_you_mean: 'words' }),
        { ...answer({}), subrequest: 'links' },
        { type: `${SEARCH_CONTENT}_PENDING` },
      ),
    ).toBe('words');
  });
});

describe('searchAlso', () => {
  it('is the near pages of the latest search', () => {
    const answer = (result) => ({ type: `${SEARCH_CONTENT}_SUCCESS`, result });
    const pages = [{ '@id': '/a' }];
    const near = searchAlso(undefined, answer({ also_about: pages }));
    expect(near).toBe(pages);
    expect(searchAlso(near, { ...answer({}), subrequest: 'links' })).toBe(pages);
    expect(searchAlso(near, answer({}))).toBe(null);
  });
});
