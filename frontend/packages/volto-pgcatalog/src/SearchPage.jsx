// Additions to Volto's search page, which has no place for them: they are put into its heading and its hits.
import { useEffect, useState } from 'react';
import { createPortal } from 'react-dom';
import { defineMessages, FormattedMessage } from 'react-intl';
import { useSelector } from 'react-redux';
import { Link, useLocation } from 'react-router-dom';
import qs from 'query-string';

const messages = defineMessages({
  meant: { id: 'Did you mean {text}?', defaultMessage: 'Did you mean {text}?' },
  help: {
    id: 'Put a minus or NOT before a word to exclude it: garden -fence, garden NOT fence. Quotes find a phrase: "garden fence".',
    defaultMessage:
      'Put a minus or NOT before a word to exclude it: garden -fence, garden NOT fence. Quotes find a phrase: "garden fence".',
  },
});

/** Returns the heading of the page, as soon as it is there; looked for when one of `causes` changes. */
const useHeading = (...causes) => {
  const [heading, setHeading] = useState(null);
  useEffect(() => {
    setHeading(document.querySelector('#page-search header'));
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, causes);
  return heading;
};

/** Below the heading: how words are excluded. */
export const SearchHelp = () => {
  const { pathname } = useLocation();
  const heading = useHeading(pathname);
  if (!heading) return null;
  return createPortal(
    <p className="search-help discreet">
      <FormattedMessage {...messages.help} />
    </p>,
    heading,
  );
};

/** Below the heading: a link that searches for what was meant. */
export const DidYouMean = () => {
  const meant = useSelector((state) => state.pgcatalogMeant);
  const { pathname, search } = useLocation();
  const heading = useHeading(meant, pathname);
  if (!meant || !heading) return null;
  const address = `${pathname}?${qs.stringify({
    ...qs.parse(search),
    SearchableText: meant,
  })}`;
  return createPortal(
    <p className="did-you-mean">
      <FormattedMessage
        {...messages.meant}
        values={{
          text: (
            <Link dir="auto" to={address}>
              {meant}
            </Link>
          ),
        }}
      />
    </p>,
    heading,
  );
};

const placesIn = (articles, items) =>
  items.flatMap((item, number) => {
    const text = item.highlighting?.text?.[0];
    const footer = articles[number]?.querySelector('.tileFooter');
    if (!text || !footer) return [];
    const place = document.createElement('div');
    place.className = 'tileBody pgcatalog-snippet';
    footer.before(place);
    return [{ key: item['@id'], place, text }];
  });

/** In each hit: where the words of the search stand, marked; a text of any language has its own direction. */
export const Snippets = () => {
  const items = useSelector((state) => state.search?.items);
  const [places, setPlaces] = useState([]);
  useEffect(() => {
    const articles = document.querySelectorAll('#page-search .tileItem');
    articles.forEach((article) =>
      article
        .querySelectorAll('.tileHeadline, .tileBody')
        .forEach((text) => text.setAttribute('dir', 'auto')),
    );
    const found = placesIn(articles, items || []);
    setPlaces(found);
    return () => found.forEach(({ place }) => place.remove());
  }, [items]);
  return places.map(({ key, place, text }) =>
    // HTML of our own service: all of the text is quoted, but <mark>.
    createPortal(
      <span
        className="snippet"
        dir="auto"
        dangerouslySetInnerHTML={{ __html: text }}
      />,
      place,
      key,
    ),
  );
};
