// Volto's own settings come first; those of the add-ons are applied by Volto.
import '@plone/volto/config';
import { runtimeConfig } from '@plone/volto/runtime_config';
import { searchPage } from 'volto-pgcatalog';

export default function applyConfig(config) {
  config.settings.supportedLanguages = ['en', 'de'];
  // Whether the site has a folder for each language is said where the server is started; the build is the same.
  config.settings.isMultilingual = runtimeConfig.RAZZLE_MULTILINGUAL === 'on';
  if (runtimeConfig.RAZZLE_SEARCH_PAGE === 'on') searchPage(config);
  return config;
}
