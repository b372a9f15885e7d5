import renderer, { act } from 'react-test-renderer';
import { Provider } from 'react-redux';
import configureStore from 'redux-mock-store';
import applyConfig from './index';
import { facetsOfBlock } from './facets';

const offered = ({ choices, value }) => (
  <ul data-value={JSON.stringify(value)}>
    {choices.map(({ label }) => (
      <li key={label}>{label}</li>
    ))}
  </ul>
);

const config = () => {
  const type = (id) => ({
    id,
    view: offered,
    stateToValue: ({ selectedValue }) => ({ value: selectedValue }),
  });
  return {
    settings: {
      storeExtenders: [],
      appExtras: [],
      filterControlPanelsSchema: ({ schema }) => schema,
    },
    widgets: { widget: {} },
    addonReducers: { other: () => null },
    blocks: {
      blocksConfig: {
        search: {
          view: ({ facets }) => facets,
          edit: ({ facets }) => facets,
          variations: [],
          extensions: {
            facetWidgets: {
              types: ['selectFacet', 'checkboxFacet', 'toggleFacet'].map(type),
            },
          },
        },
      },
    },
  };
};

const FACET = { '@id': '1', field: { value: 'Subject' }, type: 'selectFacet' };

// The items of the facet in the search block `id`, whose answer has the counts.
const shown = ({ block = 'view', id = 'a', data = {}, choices = [] }) => {
  const { search } = applyConfig(config()).blocks.blocksConfig;
  const { view: Facet, stateToValue } = search.extensions.facetWidgets.types[0];
  const Block = search[block];
  const store = configureStore()({
    pgcatalogFacets: {
      a: { counts: { Subject: { data: { red: 2, blue: 5 } } }, trees: [] },
      b: { counts: null, trees: [] },
    },
  });
  const props = block === 'view' ? { id } : { block: id };
  let tree;
  act(() => {
    tree = renderer.create(
      <Provider store={store}>
        <Block
          {...props}
          data={{ facets: [FACET], ...data }}
          facets={
            <Facet
              facet={FACET}
              choices={choices}
              value={stateToValue({ selectedValue: 'red' })}
              isEditMode={block === 'edit'}
            />
          }
        />
      </Provider>,
    );
  });
  const list = tree.root.findAllByType('li').map((item) => item.children[0]);
  const [value] = tree.root
    .findAllByType('ul')
    .map((item) => JSON.parse(item.props['data-value']).label);
  return { actions: store.getActions(), list, value };
};

describe('applyConfig', () => {
  it('changes widgets with values, and no others', () => {
    const before = config();
    const { types } = applyConfig(config()).blocks.blocksConfig.search.extensions
      .facetWidgets;
    expect(types[0].view).not.toBe(offered);
    expect(types[1].showFacet({})).toBe(true);
    expect(types[2].view).toBe(
      before.blocks.blocksConfig.search.extensions.facetWidgets.types[2].view,
    );
  });
  it('keeps what other add-ons have set', () => {
    expect(Object.keys(applyConfig(config()).addonReducers)).toContain('other');
  });
});

describe('Search Tuning', () => {
  const schema = { properties: { pins: {} }, fieldsets: [{ fields: ['pins'] }] };
  const fields = (panel) => {
    const { filterControlPanelsSchema: filter } = applyConfig(config()).settings;
    return filter({ '@id': `/@controlpanels/${panel}`, schema }).fieldsets.flatMap(
      (fieldset) => fieldset.fields,
    );
  };
  it('has a second tab, other panels have none', () => {
    expect(fields('pgcatalog-search')).toEqual(['pins', 'pgcatalog_tuning']);
    expect(fields('pgcatalog-search-page')).toEqual(['pins']);
  });
});

describe('a facet', () => {
  it.each(['view', 'edit'])('has counts in the %s of its block', (block) => {
    expect(shown({ block }).list).toEqual(['blue (5)', 'red (2)']);
  });
  it('tells the store what to ask for', () => {
    expect(shown({}).actions).toEqual([
      facetsOfBlock('a', { values: ['Subject'], trees: [] }),
    ]);
  });
  it('has the count in what is chosen', () => {
    expect(shown({}).value).toBe('red (2)');
  });
  it('has none of another block, and Volto’s choices then', () => {
    const choices = [{ value: 'red', label: 'Red' }];
    expect(shown({ id: 'b', choices }).list).toEqual(['Red']);
    expect(shown({ id: 'b' }).list).toEqual([]);
  });
  it('stays within the query of its block', () => {
    const data = { query: { query: [{ i: 'Subject', v: ['red'] }] } };
    expect(shown({ data }).list).toEqual(['red (2)']);
  });
});
