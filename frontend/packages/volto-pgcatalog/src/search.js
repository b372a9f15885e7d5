// What the search page of Volto is answered besides its hits: where the words stand in them, what was meant, and near pages.
import { SEARCH_CONTENT } from '@plone/volto/constants/ActionTypes';

// The search page, and nobody else who uses the action, asks by the search settings of the site.
const SEARCH_PAGE = 'use_site_search_settings=1';

// The typed text, in the address of a search for its correction.
const typedIn = ({ router }) =>
  new URLSearchParams(router?.location?.search || '').get('corrected_from');

/** Redux middleware: has the request of the search page bring snippets of the hits, and count a correction that was followed. */
export const askForSnippets = (store) => (next) => (action) => {
  const { request, subrequest, type } = action;
  if (
    type !== SEARCH_CONTENT ||
    subrequest ||
    !request?.path.includes(SEARCH_PAGE)
  ) {
    return next(action);
  }
  const typed = typedIn(store.getState());
  const corrected = typed ? `&corrected_from=${encodeURIComponent(typed)}` : '';
  const path = `${request.path}&snippets=1${corrected}`;
  return next({ ...action, request: { ...request, path } });
};

/** Returns a reducer for `key` of the latest answer to the search page, null for none. */
const answered =
  (key) =>
  (state = null, action = {}) => {
    if (action.subrequest) return state;
    switch (action.type) {
      case `${SEARCH_CONTENT}_SUCCESS`:
        return action.result?.[key] || null;
      case `${SEARCH_CONTENT}_FAIL`:
        return null;
      default:
        return state;
    }
  };

/** Reducer: the text that was meant by the latest search of the search page, null for none. */
export const searchMeant = answered('did_you_mean');

/** Reducer: the pages that are near to the question of the latest search and have not its words, null for none. */
export const searchAlso = answered('also_about');
