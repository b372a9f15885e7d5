// What plone.pgcatalog knows and Volto does not show.  Nothing of Volto is shadowed.
import { runtimeConfig } from '@plone/volto/runtime_config';
import { COUNTED_WIDGETS, askForFacets, facetCounts } from './facets';
import { askForSnippets, searchAlso, searchMeant } from './search';
import counted, { namedStateToValue } from './CountedFacet';
import withMoreValues from './MoreValues';
import withFacetCounts from './SearchBlock';
import { AlsoAbout, DidYouMean, SearchHelp, Snippets } from './SearchPage';
import Suggestions from './Suggestions';

const SEARCH_PAGES = ['/search', '/*/search'];

const countFacets = (config) => {
  const { search } = config.blocks.blocksConfig;
  search.view = withFacetCounts(search.view);
  search.edit = withFacetCounts(search.edit);
  const widgets = search.extensions.facetWidgets;
  widgets.types = widgets.types.map((type) =>
    COUNTED_WIDGETS.includes(type.id)
      ? {
          ...type,
          // The other one is a menu, which takes no room.
          view: counted(
            type.id === 'checkboxFacet' ? withMoreValues(type.view) : type.view,
          ),
          stateToValue: namedStateToValue(type.stateToValue),
          // The counts have values where Volto knows none: tags, for visitors.
          showFacet: () => true,
        }
      : type,
  );
};

/** Applies the add-on, unless the environment has RAZZLE_PGCATALOG=off. */
export default function applyConfig(config) {
  if (runtimeConfig.RAZZLE_PGCATALOG === 'off') return config;
  const { settings } = config;
  settings.storeExtenders = [
    ...settings.storeExtenders,
    (stack) => [askForFacets, askForSnippets, ...stack],
  ];
  settings.appExtras = [
    ...settings.appExtras,
    ...SEARCH_PAGES.flatMap((match) => [
      { match, component: SearchHelp },
      { match, component: DidYouMean },
      { match, component: Snippets },
      { match, component: AlsoAbout },
    ]),
    { match: '', component: Suggestions },
  ];
  config.addonReducers = {
    ...config.addonReducers,
    pgcatalogFacets: facetCounts,
    pgcatalogMeant: searchMeant,
    pgcatalogAlso: searchAlso,
  };
  countFacets(config);
  return config;
}
