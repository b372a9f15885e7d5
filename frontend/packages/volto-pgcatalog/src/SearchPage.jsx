// Additions to Volto's search page, which has no place for them: they are put into its heading and its hits.
import { useEffect, useState } from 'react';
import { createPortal } from 'react-dom';
import { FormattedMessage } from 'react-intl';
import { useSelector } from 'react-redux';
import { Link, useLocation } from 'react-router-dom';
import { flattenToAppURL } from '@plone/volto/helpers/Url/Url';
import qs from 'query-string';
import { FilePage, Meant } from './page/Hit';
import messages from './page/messages';

/** Returns the element of the page that `css` selects, as soon as it is there; looked for when one of `causes` changes. */
const useElement = (css, ...causes) => {
  const [element, setElement] = useState(null);
  useEffect(() => {
    setElement(document.querySelector(css));
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, causes);
  return element;
};
const HEADING = '#page-search header';

/** Below the heading: how words are excluded. */
export const SearchHelp = () => {
  const { pathname } = useLocation();
  const heading = useElement(HEADING, pathname);
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
  const heading = useElement(HEADING, meant, pathname);
  if (!meant || !heading) return null;
  const parameters = qs.parse(search);
  const address = `${pathname}?${qs.stringify({
    ...parameters,
    SearchableText: meant,
    corrected_from: parameters.SearchableText,
  })}`;
  return createPortal(<Meant text={meant} to={address} />, heading);
};

const placesIn = (articles, items) =>
  items.flatMap((item, number) => {
    const text = item.highlighting?.text?.[0];
    const footer = articles[number]?.querySelector('.tileFooter');
    if (!text || !footer) return [];
    const place = document.createElement('div');
    place.className = 'tileBody pgcatalog-snippet';
    footer.before(place);
    return [{ key: item['@id'], place, text, page: item.file_page }];
  });

/** In each hit: where the words of the search stand, marked; a text of any language has its own direction. */
export const Snippets = () => {
  const items = useSelector((state) => state.search?.items);
  const [places, setPlaces] = useState([]);
  useEffect(() => {
    const articles = document.querySelectorAll(
      '#page-search .tileItem:not(.also-about *)',
    );
    articles.forEach((article) =>
      article
        .querySelectorAll('.tileHeadline, .tileBody')
        .forEach((text) => text.setAttribute('dir', 'auto')),
    );
    const found = placesIn(articles, items || []);
    setPlaces(found);
    return () => found.forEach(({ place }) => place.remove());
  }, [items]);
  return places.map(({ key, place, text, page }) =>
    // HTML of our own service: all of the text is quoted, but <mark>.
    createPortal(
      <>
        <span
          className="snippet"
          dir="auto"
          dangerouslySetInnerHTML={{ __html: text }}
        />
        <FilePage page={page} />
      </>,
      place,
      key,
    ),
  );
};

/** Below the hits: the pages that are near to the question and have not its words, each with its passage. */
export const AlsoAbout = () => {
  const also = useSelector((state) => state.pgcatalogAlso);
  const { pathname } = useLocation();
  const content = useElement('#page-search #content-core', also, pathname);
  if (!also || !content) return null;
  return createPortal(
    <section className="also-about" aria-labelledby="also-about">
      <h2 id="also-about">
        <FormattedMessage {...messages.also} />
      </h2>
      {also.map((item) => (
        <article className="tileItem" key={item['@id']}>
          <h3 className="tileHeadline" dir="auto">
            <Link to={flattenToAppURL(item['@id'])}>{item.title}</Link>
          </h3>
          <div className="tileBody">
            <span
              className="snippet"
              dir="auto"
              dangerouslySetInnerHTML={{ __html: item.highlighting.text[0] }}
            />
            <FilePage page={item.file_page} />
          </div>
        </article>
      ))}
    </section>,
    content,
  );
};
