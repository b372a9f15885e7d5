// The counts of a search block's facets: asked for along with its hits, and kept for its facets to show.
import isEqual from 'lodash/isEqual';
import { GET_QUERYSTRING_RESULTS } from '@plone/volto/constants/ActionTypes';

export const FACETS_OF_BLOCK = 'PGCATALOG_FACETS_OF_BLOCK';

// Widgets that offer a list of values; date ranges and yes or no have none to count.
export const COUNTED_WIDGETS = ['selectFacet', 'checkboxFacet'];
/** The widget of years and months, or places. */
export const TREE_WIDGET = 'pgcatalogTree';
/** Number of values that are shown at first. */
export const SHOWN = 6;

// Volto overrides the block's own criterion of an index by a facet of the same name.
const PREFIX = 'facet.';

const kindOf = (facet) => facet.type || 'selectFacet';

/** Returns the name of the index of `facet`. */
export const indexOf = (facet) => {
  const name = facet?.field?.value;
  return name?.startsWith(PREFIX) ? name.slice(PREFIX.length) : name;
};

/** Returns `data` of a search block with separate names for its facets with years, months and places. */
export const withSeparateNames = (data) => {
  if (!data?.facets?.some((facet) => kindOf(facet) === TREE_WIDGET)) {
    return data;
  }
  const facets = data.facets.map((facet) =>
    kindOf(facet) === TREE_WIDGET && facet.field
      ? { ...facet, field: { ...facet.field, value: PREFIX + indexOf(facet) } }
      : facet,
  );
  return { ...data, facets };
};

/** Returns the names of the indexes whose values the facets of `data`, of a search block, offer: `{ values, trees }`. */
export const countedIndexes = (data) => {
  const names = (kinds) => [
    ...new Set(
      (data?.facets || [])
        .filter((facet) => kinds.includes(kindOf(facet)))
        .map(indexOf)
        .filter(Boolean),
    ),
  ];
  return { values: names(COUNTED_WIDGETS), trees: names([TREE_WIDGET]) };
};

export const facetsOfBlock = (block, names) => ({
  type: FACETS_OF_BLOCK,
  block,
  names,
});

const isEmpty = ({ values, trees }) => !values.length && !trees.length;

/** Returns the body `data` of a request with the facets `names`; chosen years, months and places are no criteria of Volto. */
const facetedQuery = (data, { values, trees }) => {
  const chosen = (name) =>
    data.query.find(({ i }) => i === PREFIX + name)?.v || [];
  return {
    ...data,
    query: data.query.filter(({ i }) => !i.startsWith(PREFIX)),
    ...(values.length ? { facets: values } : {}),
    ...(trees.length
      ? {
          page_facets: Object.fromEntries(
            trees.map((name) => [name, chosen(name)]),
          ),
        }
      : {}),
  };
};

const withFacets = (action, names) => {
  const { request } = action;
  if (request.op !== 'get') {
    const data = facetedQuery(request.data, names);
    return { ...action, request: { ...request, data } };
  }
  const [address, parameter] = request.path.split('?query=');
  const query = facetedQuery(JSON.parse(decodeURIComponent(parameter)), names);
  const path = `${address}?query=${encodeURIComponent(JSON.stringify(query))}`;
  return { ...action, request: { ...request, path } };
};

/**
 * Redux middleware: has each search block's request bring the counts of the facets that the block has.
 * A block whose facets change, as in the editor, is asked for once more.
 */
export const askForFacets = () => {
  const facets = new Map();
  const latest = new Map();
  return (next) => (action) => {
    if (action.type === FACETS_OF_BLOCK) {
      const { block, names } = action;
      const isKnown = isEqual(facets.get(block), names);
      facets.set(block, names);
      const asked = latest.get(block);
      return asked && !isEmpty(names) && !isKnown
        ? next(withFacets(asked, names))
        : undefined;
    }
    const names = facets.get(action.subrequest);
    if (action.type !== GET_QUERYSTRING_RESULTS || !action.request || !names) {
      return next(action);
    }
    latest.set(action.subrequest, action);
    return next(isEmpty(names) ? action : withFacets(action, names));
  };
};

/** Reducer: the latest answer to each search block, `{ [block]: { counts: { [index]: { data, truncated } }, trees: [facet] } }`. */
export const facetCounts = (state = {}, action = {}) => {
  const { result, subrequest, type } = action;
  if (type !== `${GET_QUERYSTRING_RESULTS}_SUCCESS` || !subrequest) {
    return state;
  }
  const { facets: counts = null, page_facets: trees = [] } = result || {};
  return { ...state, [subrequest]: { counts, trees } };
};

/**
 * Returns the values of a facet with their numbers of hits, the most frequent first: `[{ value, title, count }]`.
 *
 * - `choices`: what Volto offers, `[{ value, label }]`, a user without a full name having no label; without any choice,
 *   the counted values are offered.
 * - `counts`: `{ data: { [value]: number }, truncated }`; values that were not counted are kept with the number null.
 * - `chosen`: values that are offered even without a hit.
 * - `allowed`: the values to which the block itself is restricted, if it is.
 */
export const countedChoices = (choices, counts, chosen = [], allowed = null) => {
  const { data, truncated } = counts;
  const known = choices.length
    ? choices
    : [...new Set([...Object.keys(data), ...chosen])].map((value) => ({
        value,
      }));
  const number = (value) => (Object.hasOwn(data, value) ? data[value] : 0);
  return known
    .filter(({ value }) => !allowed || allowed.includes(value))
    .filter(
      ({ value }) => number(value) > 0 || truncated || chosen.includes(value),
    )
    .sort((a, b) => number(b.value) - number(a.value))
    .map(({ value, label }) => ({
      value,
      title: label || value,
      count: number(value) || !truncated ? number(value) : null,
    }));
};

/** Returns `values` as the facet of a search page: chosen values, and the first others up to SHOWN, are shown at first. */
export const facetOf = (values, chosen) => {
  const isChosen = ({ value }) => chosen.includes(value);
  const ordered = [
    ...values.filter(isChosen),
    ...values.filter((each) => !isChosen(each)),
  ];
  const shown = Math.max(SHOWN, values.filter(isChosen).length);
  const first = new Set(ordered.slice(0, shown));
  return {
    shown: first.size,
    values: [
      ...values.filter((each) => first.has(each)),
      ...values.filter((each) => !first.has(each)),
    ].map((each) => ({ parts: [], ...each })),
  };
};
