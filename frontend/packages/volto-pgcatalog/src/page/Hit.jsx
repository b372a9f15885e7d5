// A hit of the search page.
import { Fragment } from 'react';
import { FormattedMessage, useIntl } from 'react-intl';
import { Link } from 'react-router-dom';
import Icon from '@plone/volto/components/theme/Icon/Icon';
import Image from '@plone/volto/components/theme/Image/Image';
import UniversalLink from '@plone/volto/components/manage/UniversalLink/UniversalLink';
import { getContentIcon } from '@plone/volto/helpers/Content/Content';
import { flattenToAppURL } from '@plone/volto/helpers/Url/Url';
import messages from './messages';

const SHOWN_TAGS = 6;

/** HTML of our own service: all of the text is quoted, but <mark>. */
const Marked = ({ as: Element = 'span', html, ...props }) => (
  <Element dir="auto" dangerouslySetInnerHTML={{ __html: html }} {...props} />
);

/** The page of a file that a text is from; the link opens a PDF there. */
export const FilePage = ({ page }) =>
  page && (
    <p className="file-page">
      {page.url ? (
        <a href={flattenToAppURL(page.url)}>{page.title}</a>
      ) : (
        page.title
      )}
    </p>
  );

/** A suggested text, and the address `to` of its search. */
export const Meant = ({ text, to }) => (
  <p className="did-you-mean">
    <FormattedMessage
      {...messages.meant}
      values={{
        text: (
          <Link dir="auto" rel="nofollow" to={to}>
            {text}
          </Link>
        ),
      }}
    />
  </p>
);

const Tags = ({ tags, pathname }) =>
  tags.map(({ title, query }) => (
    <li key={title}>
      <Link
        className="ui label"
        dir="auto"
        rel="tag nofollow"
        to={`${pathname}${query}`}
      >
        {title}
      </Link>
    </li>
  ));

/** Returns the kind of the file of `item`, as PDF; nothing for other types. */
const kindOfFile = ({ '@id': url, '@type': type }) =>
  type === 'File' && /\.(\w{1,5})$/.exec(url)?.[1].toUpperCase();

const About = ({ item, isByMeaning }) => {
  const { author, modified, published, type_title: type } = item;
  const parts = [
    type,
    kindOfFile(item),
    author,
    published && (
      <FormattedMessage {...messages.published} values={{ date: published }} />
    ),
    modified && (
      <FormattedMessage {...messages.modified} values={{ date: modified }} />
    ),
  ].filter(Boolean);
  return (
    <p className="discreet pgcatalog-about">
      {item.is_pinned && (
        <span className="ui mini label pgcatalog-pinned">
          <FormattedMessage {...messages.pinned} />
        </span>
      )}
      {isByMeaning && (
        <span className="ui mini label">
          <FormattedMessage {...messages.byMeaning} />
        </span>
      )}
      {parts.map((part, number) => (
        <Fragment key={number}>
          {number > 0 && ' · '}
          {part}
        </Fragment>
      ))}
    </p>
  );
};

const Breadcrumbs = ({ crumbs }) =>
  crumbs.length > 0 && (
    <p className="discreet pgcatalog-place">
      <FormattedMessage {...messages.located} />{' '}
      {crumbs.map(({ '@id': url, title }, number) => (
        <Fragment key={number}>
          {number > 0 && ' / '}
          {url ? (
            <UniversalLink href={flattenToAppURL(url)}>
              <span dir="auto">{title}</span>
            </UniversalLink>
          ) : (
            title
          )}
        </Fragment>
      ))}
    </p>
  );

const Hit = ({ item, isByMeaning, pathname }) => {
  const intl = useIntl();
  const { highlighting, similar, tags } = item;
  const more = tags.slice(SHOWN_TAGS);
  return (
    <li className="tileItem">
      <div className="pgcatalog-hit-text">
        <h3 className="tileHeadline">
          <Icon
            name={getContentIcon(item['@type'], item.is_folderish)}
            size="20px"
          />
          <UniversalLink item={item} className="summary url">
            <Marked html={highlighting.Title[0]} />
          </UniversalLink>
        </h3>
        <About item={item} isByMeaning={isByMeaning} />
        {highlighting.text.map((html) => (
          <Marked as="p" className="snippet" html={html} key={html} />
        ))}
        <FilePage page={item.file_page} />
        <Breadcrumbs crumbs={item.breadcrumbs} />
        <div className="pgcatalog-foot">
          {tags.length > 0 && (
            <ul
              aria-label={intl.formatMessage(messages.tags)}
              className="pgcatalog-tags"
            >
              <Tags tags={tags.slice(0, SHOWN_TAGS)} pathname={pathname} />
              {more.length > 0 && (
                <li>
                  <details>
                    <summary>
                      <FormattedMessage
                        {...messages.moreTags}
                        values={{ number: more.length }}
                      />
                    </summary>
                    <ul className="pgcatalog-tags">
                      <Tags tags={more} pathname={pathname} />
                    </ul>
                  </details>
                </li>
              )}
            </ul>
          )}
          {similar && (
            <Link
              className="pgcatalog-similar"
              rel="nofollow"
              to={`${pathname}${similar}`}
            >
              <FormattedMessage {...messages.similar} />
              <span className="visually-hidden">: {item.title}</span>
            </Link>
          )}
        </div>
      </div>
      {item.image_scales && item.image_field && (
        <Image
          alt=""
          className="pgcatalog-image"
          imageField={item.image_field}
          item={item}
          loading="lazy"
          sizes="120px"
        />
      )}
    </li>
  );
};

export default Hit;
