// Volto's own settings come first; those of the add-ons are applied by Volto.
import '@plone/volto/config';

export default function applyConfig(config) {
  config.settings.supportedLanguages = ['en', 'de'];
  return config;
}
