// The tab of Volto's control panel Search Tuning; its content is loaded when it is opened.
import { defineMessages, FormattedMessage } from 'react-intl';

// The other messages are loaded with the tab.
const messages = defineMessages({
  tab: { id: 'Preview and searches', defaultMessage: 'Preview and searches' },
});

export const PANEL = 'pgcatalog-search';
export const WIDGET = 'pgcatalog_tuning';

/** Wraps Volto's `filterControlPanelsSchema`: the schema of Search Tuning gets a second tab, whose only field is the widget. */
export const withTuning = (filter) => (controlpanel) => {
  const schema = filter(controlpanel);
  if (!controlpanel['@id'].endsWith(`/${PANEL}`)) return schema;
  const title = {
    key: WIDGET,
    content: <FormattedMessage {...messages.tab} />,
  };
  return {
    ...schema,
    properties: { ...schema.properties, [WIDGET]: { widget: WIDGET } },
    fieldsets: [...schema.fieldsets, { id: WIDGET, title, fields: [WIDGET] }],
  };
};
