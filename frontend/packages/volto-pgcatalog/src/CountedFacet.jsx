// A facet of the search block with the number of hits behind each of its values.
import { useContext } from 'react';
import { useSelector } from 'react-redux';
import { countedChoices } from './facets';
import { SearchBlockContext } from './SearchBlock';

const asList = (value) => (Array.isArray(value) ? value : [value]);

/** Returns Volto's function from a state to the value of a widget; values without a title are called by themselves. */
export const namedStateToValue = (stateToValue) => (props) => {
  const named = (each) =>
    each?.value ? { ...each, label: each.label || each.value } : each;
  const value = stateToValue(props);
  return Array.isArray(value) ? value.map(named) : named(value);
};

const counted = (Facet) => {
  const CountedFacet = (props) => {
    const { choices, facet, isEditMode, value } = props;
    const { id, query } = useContext(SearchBlockContext);
    const name = facet?.field?.value;
    const counts = useSelector((state) => state.pgcatalogFacets?.[id]?.[name]);
    if (!counts) {
      return choices.length || isEditMode ? <Facet {...props} /> : null;
    }
    const chosen = asList(value)
      .map((each) => each?.value)
      .filter(Boolean);
    const criterion = query?.find(({ i }) => i === name)?.v;
    const allowed = criterion ? asList(criterion) : null;
    const shown = countedChoices(choices, counts, chosen, allowed);
    const titles = Object.fromEntries(shown.map((c) => [c.value, c.label]));
    const withCount = (each) =>
      each?.value ? { ...each, label: titles[each.value] ?? each.label } : each;
    return (
      <Facet
        {...props}
        choices={shown}
        value={Array.isArray(value) ? value.map(withCount) : withCount(value)}
      />
    );
  };
  return CountedFacet;
};

export default counted;
