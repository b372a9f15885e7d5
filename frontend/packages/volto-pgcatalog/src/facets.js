// The counts of a search block's facets: asked for along with its hits, and kept for its facets to show.
import isEqual from 'lodash/isEqual';
import { GET_QUERYSTRING_RESULTS } from '@plone/volto/constants/ActionTypes';

export const FACETS_OF_BLOCK = 'PGCATALOG_FACETS_OF_BLOCK';

// Widgets that offer a list of values; dates and yes or no have none to count.
export const COUNTED_WIDGETS = ['selectFacet', 'checkboxFacet'];

/**
 * Returns the names of the indexes whose values the facets of a search block, its `data`, offer.
 * A facet without a type is a select, as in Volto.
 */
export const countedIndexes = (data) => [
  ...new Set(
    (data?.facets || [])
      .filter((facet) => COUNTED_WIDGETS.includes(facet.type || 'selectFacet'))
      .map((facet) => facet.field?.value)
      .filter(Boolean),
  ),
];

export const facetsOfBlock = (block, names) => ({
  type: FACETS_OF_BLOCK,
  block,
  names,
});

const withFacets = (action, facets) => {
  const { request } = action;
  if (request.op !== 'get') {
    const data = { ...request.data, facets };
    return { ...action, request: { ...request, data } };
  }
  const [address, parameter] = request.path.split('?query=');
  const query = { ...JSON.parse(decodeURIComponent(parameter)), facets };
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
      return asked && names.length && !isKnown
        ? next(withFacets(asked, names))
        : undefined;
    }
    const names = facets.get(action.subrequest);
    if (action.type !== GET_QUERYSTRING_RESULTS || !action.request || !names) {
      return next(action);
    }
    latest.set(action.subrequest, action);
    return next(names.length ? withFacets(action, names) : action);
  };
};

/** Reducer: the counts of the latest answer to each search block, `{ [block]: { [index]: { data, truncated } } }`. */
export const facetCounts = (state = {}, action = {}) =>
  action.type === `${GET_QUERYSTRING_RESULTS}_SUCCESS` && action.subrequest
    ? { ...state, [action.subrequest]: action.result?.facets || null }
    : state;

/**
 * Returns the choices of a facet with their numbers of hits, the most frequent first.
 *
 * - `choices`: what Volto offers, `[{ value, label }]`, a user without a full name having no label; without any choice,
 *   the counted values are offered.
 * - `counts`: `{ data: { [value]: number }, truncated }`; values that were not counted are kept without a number.
 * - `chosen`: values that are offered even without a hit.
 * - `allowed`: the values to which the block itself is restricted, if it is.
 */
export const countedChoices = (choices, counts, chosen = [], allowed = null) => {
  const { data, truncated } = counts;
  const known = choices.length
    ? choices
    : [...new Set([...Object.keys(data), ...chosen])].map((value) => ({
        value,
        label: value,
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
      label:
        number(value) || !truncated
          ? `${label || value} (${number(value)})`
          : label || value,
    }));
};
