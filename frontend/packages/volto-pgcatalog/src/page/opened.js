// The beacon of an opened hit: without cookies, and nothing waits for it.
import { formatUrl } from '@plone/volto/helpers/Api/Api';

const LINKS = '.tileHeadline a';

/** Returns handlers of the element around the hits of `data`; none if the site does not count opened hits. */
export const countOpened = ({ counts_opened: isCounted, text }) => {
  if (!isCounted) return {};
  const send = ({ button, target }) => {
    if (button > 1 || !target.closest(LINKS)) return;
    fetch(formatUrl('/@pgcatalog-opened'), {
      method: 'POST',
      keepalive: true,
      credentials: 'omit',
      headers: {
        Accept: 'application/json',
        'Content-Type': 'application/json',
      },
      body: JSON.stringify({ text }),
    }).catch(() => {});
  };
  // Before a link prevents the default and the page changes.
  return { onClickCapture: send, onAuxClickCapture: send };
};
