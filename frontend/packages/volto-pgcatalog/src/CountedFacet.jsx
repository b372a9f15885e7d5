// The facets of the search block, with the number of hits behind each of their values.
import { useContext } from 'react';
import { useSelector } from 'react-redux';
import { hasDateOperation } from '@plone/volto/components/manage/Blocks/Search/utils';
import { TREE_WIDGET, countedChoices, facetOf, indexOf } from './facets';
import Facet from './page/Facet';
import messages from './page/messages';
import { SearchBlockContext } from './SearchBlock';

const asList = (value) => (Array.isArray(value) ? value : [value]);

/** Returns Volto's function from a state to the value of a widget; values without a title are called by themselves. */
export const namedStateToValue = (stateToValue) => (props) => {
  const named = (each) =>
    each?.value ? { ...each, label: each.label || each.value } : each;
  const value = stateToValue(props);
  return Array.isArray(value) ? value.map(named) : named(value);
};

/** Returns the counted values of the facet with `props`, and the chosen ones; values are null if they were not counted. */
const useCounts = ({ choices, facet, value }) => {
  const { id, query } = useContext(SearchBlockContext);
  const name = indexOf(facet);
  const counts = useSelector(
    (state) => state.pgcatalogFacets?.[id]?.counts?.[name],
  );
  const chosen = asList(value)
    .map((each) => each?.value)
    .filter(Boolean);
  const criterion = query?.find(({ i }) => i === name)?.v;
  const allowed = criterion ? asList(criterion) : null;
  return {
    chosen,
    values: counts ? countedChoices(choices, counts, chosen, allowed) : null,
  };
};

const PageFacet = ({ box, chosen, facet, isEditMode, onChange, isMulti }) => {
  const { id } = useContext(SearchBlockContext);
  const name = facet.field.value;
  const choose = (value, isChosen) => {
    const others = isMulti ? chosen.filter((each) => each !== value) : [];
    const values = isChosen ? [...others, value] : others;
    onChange(name, isMulti ? values : values[0] || null);
  };
  return (
    <Facet
      choose={choose}
      facet={{
        ...box,
        name: `${id}-${name}`,
        field: `${id}-${name}`,
        title: facet.title ?? facet.field.label,
      }}
      input={{ disabled: isEditMode, type: isMulti ? 'checkbox' : 'radio' }}
      isChosen={(value) => chosen.includes(value)}
    />
  );
};

/** Returns Volto's facet `Checkboxes` as a facet of the search page, if its values were counted. */
export const countedCheckboxes = (Checkboxes) => {
  const CountedCheckboxes = (props) => {
    const { chosen, values } = useCounts(props);
    const { choices, isEditMode } = props;
    if (!values) {
      return choices.length || isEditMode ? <Checkboxes {...props} /> : null;
    }
    if (!values.length) return null;
    return (
      <PageFacet {...props} box={facetOf(values, chosen)} chosen={chosen} />
    );
  };
  return CountedCheckboxes;
};

/** Returns Volto's facet `Select`, a menu, with counts behind the values, if they were counted. */
export const countedSelect = (Select) => {
  const CountedSelect = (props) => {
    const { values } = useCounts(props);
    const { choices, isEditMode, value } = props;
    if (!values) {
      return choices.length || isEditMode ? <Select {...props} /> : null;
    }
    const shown = values.map(({ value, title, count }) => ({
      value,
      label: count === null ? title : `${title} (${count})`,
    }));
    const titles = Object.fromEntries(shown.map((c) => [c.value, c.label]));
    const withCount = (each) =>
      each?.value ? { ...each, label: titles[each.value] ?? each.label } : each;
    return (
      <Select
        {...props}
        choices={shown}
        value={Array.isArray(value) ? value.map(withCount) : withCount(value)}
      />
    );
  };
  return CountedSelect;
};

/** A facet of years and months, or of places; without counts there is none. */
const TreeFacet = (props) => {
  const { facet, value } = props;
  const { id } = useContext(SearchBlockContext);
  const name = indexOf(facet);
  const box = useSelector((state) =>
    state.pgcatalogFacets?.[id]?.trees.find((each) => each.name === name),
  );
  return box ? <PageFacet {...props} box={box} chosen={value} isMulti /> : null;
};

const OPERATION = 'plone.app.querystring.operation.selection.any';

/** Returns the settings in the editor: dates and places can be chosen as the field. */
const treeSchema = ({ schema }) => {
  schema.properties.field.filterOptions = (options) =>
    Object.fromEntries(
      Object.entries(options).filter(
        ([name, { operations }]) =>
          name === 'path' || hasDateOperation(operations || []),
      ),
    );
  return schema;
};

/** The type of the facet, for `facetWidgets.types` of the search block. */
export const treeType = {
  id: TREE_WIDGET,
  title: messages.tree.defaultMessage,
  view: TreeFacet,
  isDefault: false,
  schemaEnhancer: treeSchema,
  showFacet: () => true,
  // A string is the criterion of the block itself.
  stateToValue: ({ selectedValue }) =>
    Array.isArray(selectedValue) ? selectedValue : [],
  valueToQuery: ({ value, facet }) =>
    Array.isArray(value) && value.length
      ? { i: facet.field.value, o: OPERATION, v: value }
      : undefined,
  filterListComponent: () => null,
};
