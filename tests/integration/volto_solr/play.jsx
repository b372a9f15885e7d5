// Plays a session: `node play.cjs requests` prints what the front-end asks for, `node play.cjs states` reads the answers
// to that and prints what the front-end makes of them: its state, and the page.
import { readFileSync } from 'node:fs';
import { IntlProvider } from 'react-intl';
import { StaticRouter } from 'react-router-dom';
import { Provider } from 'react-redux';
import { createStore } from 'redux';
import { renderToStaticMarkup } from 'react-dom/server';
import { solrSearchContent } from 'volto-solr/actions/solrsearch/solrsearch';
import { solrSearchSuggestions } from 'volto-solr/actions/solrsearch/solrSearchSuggestions';
import search from 'volto-solr/reducers/solrsearch/solrsearch';
import suggestions from 'volto-solr/reducers/solrsearch/solrSearchSuggestions';
import { encodeConditionTree, pruneConditionTree, SearchConditions } from 'volto-solr/components/theme/SolrSearch/SearchConditions';
import { queryStateFromParams, queryStateToParams } from 'volto-solr/components/theme/SolrSearch/SearchQuery';
import { SearchTabs } from 'volto-solr/components/theme/SolrSearch/SearchTabs';
import { SearchResultInfo } from 'volto-solr/components/theme/SolrSearch/SearchResultInfo';
import { getCollationMisspellings } from 'volto-solr/components/theme/SolrSearch/getCollationMisspellings';
import { getSuggestions } from 'volto-solr/components/theme/SolrSearch/getSuggestions';
import DefaultResultItem from 'volto-solr/components/theme/SolrSearch/resultItems/DefaultResultItem';
import EventResultItem from 'volto-solr/components/theme/SolrSearch/resultItems/EventResultItem';
import ImageResultItem from 'volto-solr/components/theme/SolrSearch/resultItems/ImageResultItem';
import NewsItemResultItem from 'volto-solr/components/theme/SolrSearch/resultItems/NewsItemResultItem';

const VIEWS = { Event: EventResultItem, Image: ImageResultItem, 'News Item': NewsItemResultItem };

// What a visitor does: the parameters of the address of the search page, and what the page adds to them.
const chosen = (conditions) => encodeConditionTree(pruneConditionTree(conditions));
const STEPS = {
  words: { SearchableText: 'needle', sort_on: 'getId' },
  'next page': { SearchableText: 'needle', sort_on: 'sortable_title', b_start: 5, b_size: 5 },
  'newest first': { SearchableText: 'fair', sort_on: 'effective', sort_order: 'reverse', b_size: 2 },
  'by title': { SearchableText: 'needle', sort_on: 'sortable_title', sort_order: 'ascending', b_size: 5 },
  'second tab': { SearchableText: 'pin', b_size: 5, group_select: '1' },
  'a chosen tag': { SearchableText: 'needle', facet_conditions: chosen({ Subject: { c: { tag0: true, odd: false } } }), b_size: 1, sort_on: 'getId' },
  'part of a tag': { SearchableText: 'needle', facet_conditions: chosen({ Subject: { p: 'tag', m: true } }), b_size: 1, sort_on: 'getId' },
  'this folder only': { SearchableText: 'needle', local: 'true', path_prefix: '/news/', sort_on: 'getId', b_size: 5 },
  types: { portal_type: ['Event', 'Folder'], sort_on: 'getId' },
  everything: { doEmptySearch: true, sort_on: 'getId', b_size: 100 },
  'a typing error': { SearchableText: 'haystakc', spellcheck: 'true', collate: 'true', sort_on: 'getId', b_size: 1 },
  'the first page from the server': {
    SearchableText: 'Page 03', sort_on: 'getId', use_site_search_settings: 1, metadata_fields: ['effective', 'UID', 'start'], hl: 'true',
  },
};
const TYPED = { typed: ['pin f'], 'typed here': ['page 03', '/news'] };

const parameters = (options) => ({ ...options, ...(options.facet_conditions ? queryStateToParams(queryStateFromParams(options)) : {}) });
const actions = {
  ...Object.fromEntries(Object.entries(STEPS).map(([name, options]) => [name, solrSearchContent('', parameters(options))])),
  ...Object.fromEntries(Object.entries(TYPED).map(([name, typed]) => [name, solrSearchSuggestions(...typed)])),
};

const page = (state, options) => renderToStaticMarkup(
  <IntlProvider locale="en" onError={() => {}}>
    <Provider store={createStore(() => ({ intl: { locale: 'en' }, vocabularies: {} }))}>
      <StaticRouter>
        <SearchResultInfo searchableText={options.SearchableText} total={state.total} />
        <SearchTabs groupSelect={queryStateFromParams(options).groupSelect} setGroupSelect={() => {}} facetGroups={state.facetGroups} />
        <SearchConditions facetFields={state.facetFields} vocabularies={state.vocabularies} conditionTree={queryStateFromParams(options).facetConditions} />
        {state.items.map((item) => { const View = VIEWS[item['@type']] ?? DefaultResultItem; return <View key={item['@id']} item={item} />; })}
      </StaticRouter>
    </Provider>
  </IntlProvider>,
);

const played = (name, result) => {
  const reducer = name in TYPED ? suggestions : search;
  const type = actions[name].type;
  const state = reducer(reducer(undefined, { type: `${type}_PENDING` }), { type: `${type}_SUCCESS`, result });
  if (name in TYPED) return { state };
  return {
    state,
    corrected: getCollationMisspellings(state.collationMisspellings),
    suggested: getSuggestions(state.spellcheck.suggestions ?? []),
    page: page(state, STEPS[name]),
  };
};

const output = process.argv[2] === 'requests'
  ? Object.fromEntries(Object.entries(actions).map(([name, action]) => [name, action.request.path]))
  : Object.fromEntries(Object.entries(JSON.parse(readFileSync(0, 'utf-8'))).map(([name, answer]) => [name, played(name, answer)]));
process.stdout.write(JSON.stringify(output));
