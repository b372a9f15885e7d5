// What plone.pgcatalog knows and Volto does not show.  Nothing of Volto is shadowed.
import loadable from '@loadable/component';
import { runtimeConfig } from '@plone/volto/runtime_config';
import { askForFacets, facetCounts } from './facets';
import { askForSnippets, searchAlso, searchMeant } from './search';
import {
  countedCheckboxes,
  countedSelect,
  namedStateToValue,
  treeType,
} from './CountedFacet';
import withFacetCounts, { withChips } from './SearchBlock';
import { AlsoAbout, DidYouMean, SearchHelp, Snippets } from './SearchPage';
import Panel from './Panel';
import Page from './page/Page';
import { searchPageState } from './page/data';
import { WIDGET, withTuning } from './tuning/schema';

// Visitors never load it.
const Tuning = loadable(() => import('./tuning/Tuning'));

const SEARCH_PAGES = ['/search', '/*/search'];
// Those of the page with facets: of the site, and of the folder of a language.
const ROUTES = ['/search', '/:language([a-z]{2}|[a-z]{2}-[a-z]{2,4})/search'];
// What is inserted into Volto's own search page.
const ADDITIONS = [SearchHelp, DidYouMean, Snippets, AlsoAbout];

const COUNTED = {
  selectFacet: countedSelect,
  checkboxFacet: countedCheckboxes,
};

const countFacets = (config) => {
  const { search } = config.blocks.blocksConfig;
  search.view = withFacetCounts(search.view);
  search.edit = withFacetCounts(search.edit, true);
  search.variations = search.variations.map((variation) => ({
    ...variation,
    view: withChips(variation.view),
  }));
  const widgets = search.extensions.facetWidgets;
  widgets.types = [
    ...widgets.types.map((type) =>
      COUNTED[type.id]
        ? {
            ...type,
            view: COUNTED[type.id](type.view),
            stateToValue: namedStateToValue(type.stateToValue),
            // The counts have values where Volto knows none: tags, for visitors.
            showFacet: () => true,
          }
        : type,
    ),
    treeType,
  ];
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
    ...SEARCH_PAGES.flatMap((match) =>
      ADDITIONS.map((component) => ({ match, component })),
    ),
    { match: '', component: Panel },
  ];
  config.addonReducers = {
    ...config.addonReducers,
    pgcatalogFacets: facetCounts,
    pgcatalogMeant: searchMeant,
    pgcatalogAlso: searchAlso,
    pgcatalogPage: searchPageState,
  };
  config.widgets.widget[WIDGET] = Tuning;
  settings.filterControlPanelsSchema = withTuning(
    settings.filterControlPanelsSchema,
  );
  countFacets(config);
  return config;
}

/** Replaces Volto's search page by the one with facets, where a project has `volto-pgcatalog:searchPage` among its add-ons. */
export const searchPage = (config) => {
  if (runtimeConfig.RAZZLE_PGCATALOG === 'off') return config;
  const { settings } = config;
  config.addonRoutes = [
    ...ROUTES.map((path) => ({ path, exact: true, component: Page })),
    ...config.addonRoutes,
  ];
  settings.appExtras = settings.appExtras.filter(
    ({ component }) => !ADDITIONS.includes(component),
  );
  return config;
};
