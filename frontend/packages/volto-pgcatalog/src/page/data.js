// The search page's data: one request to @pgsearch for each address, and the state that holds its answer.
export const SEARCH = 'PGCATALOG_SEARCH_PAGE';
export const FACETS = 'PGCATALOG_SEARCH_FACETS';

/** Returns the path of the site or of a language's folder for the `pathname` of its search page. */
export const rootOf = (pathname) => pathname.replace(/\/search\/?$/, '');

// Volto parses the path of a request without decoding it, so that a plus would remain one.
const request = (pathname, search, more = '') => {
  const query = search.replace(/^\?/, '').replace(/\+/g, '%20');
  const path = `${rootOf(pathname)}/@pgsearch?search_page=1${more}`;
  return { op: 'get', path: query ? `${path}&${query}` : path };
};

/** Action: requests the hits, facets and links of the page at `pathname` with the query string `search`. */
export const searchPage = ({ pathname, search }) => ({
  type: SEARCH,
  search,
  request: request(pathname, search),
});

/** Action: requests the facets of that page, which a large catalog does not send with the hits. */
export const searchFacets = ({ pathname, search }) => ({
  type: FACETS,
  search,
  request: request(pathname, search, '&facets=alone'),
});

const INITIAL = { search: null, data: null, error: null, loading: false };

/** Reducer: the answer for the latest address; answers for earlier ones are ignored. */
export const searchPageState = (state = INITIAL, action = {}) => {
  const { error, result, search, type } = action;
  if (type === `${SEARCH}_PENDING`) {
    return { ...state, search, loading: true };
  }
  if (search !== state.search) return state;
  switch (type) {
    case `${SEARCH}_SUCCESS`:
      return { ...state, data: result, error: null, loading: false };
    case `${SEARCH}_FAIL`: {
      const message = error?.response?.body?.message || '';
      return { ...state, data: null, error: { message }, loading: false };
    }
    case `${FACETS}_SUCCESS`: {
      const { chips, facets } = result;
      const data = { ...state.data, chips, facets, facets_follow: false };
      return { ...state, data };
    }
    case `${FACETS}_FAIL`:
      return { ...state, data: { ...state.data, facets_follow: false } };
    default:
      return state;
  }
};

/** Returns the query string of the fields of `form`; empty ones are left out, except the text. */
export const queryOf = (form) => {
  const parameters = new URLSearchParams();
  new FormData(form).forEach((value, name) => {
    if (value !== '' || name === 'SearchableText') {
      parameters.append(name, value);
    }
  });
  return `?${parameters}`;
};

/** Returns the values of `facets`, and their parts, as one list of [parameter, value]. */
export const allValues = (facets) => {
  const flat = (field, values) =>
    values.flatMap((value) => [[field, value], ...flat(field, value.parts)]);
  return facets.flatMap(({ field, values }) => flat(field, values));
};
