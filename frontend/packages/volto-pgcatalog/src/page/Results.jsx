// The hits with everything above and below them: number, order, chips, corrections, pages of results, tips.
import { FormattedMessage, useIntl } from 'react-intl';
import { Link } from 'react-router-dom';
import Icon from '@plone/volto/components/theme/Icon/Icon';
import { flattenToAppURL } from '@plone/volto/helpers/Url/Url';
import rssSVG from '@plone/volto/icons/rss.svg';
import Chips from './Chips';
import Hit, { Meant } from './Hit';
import messages from './messages';
import { countOpened } from './opened';

const Choice = ({ id, label, name, options, onChange }) => {
  const chosen = options.find(({ is_chosen: isChosen }) => isChosen);
  return (
    <div className="pgcatalog-choice">
      <label htmlFor={id}>
        <FormattedMessage {...label} />
      </label>
      <select
        id={id}
        name={name}
        onChange={onChange}
        value={chosen?.value ?? options[0].value}
      >
        {options.map(({ value, title }) => (
          <option key={value} value={value}>
            {title}
          </option>
        ))}
      </select>
    </div>
  );
};

const Order = ({ data, onChange }) => {
  const { size, sizes, sort } = data;
  const ofSizes = sizes.map((value) => ({
    value,
    title: value,
    is_chosen: value === size,
  }));
  return (
    <>
      {sort.length > 0 && (
        <Choice
          id="pgcatalog-sort"
          label={messages.sortBy}
          name="sort_on"
          onChange={onChange}
          options={sort}
        />
      )}
      <Choice
        id="pgcatalog-size"
        label={messages.perPage}
        name="b_size"
        onChange={onChange}
        options={ofSizes}
      />
    </>
  );
};

const Correction = ({ data, pathname }) => {
  const { corrected, links, suggestion, text } = data;
  if (!corrected) {
    return suggestion ? (
      <Meant text={suggestion} to={`${pathname}${links.suggestion}`} />
    ) : null;
  }
  return (
    <p className="ui info message pgcatalog-corrected">
      <FormattedMessage
        {...messages.corrected}
        values={{ text: <strong dir="auto">{corrected}</strong> }}
      />
      {' – '}
      <FormattedMessage
        {...messages.instead}
        values={{
          text: (
            <Link dir="auto" rel="nofollow" to={`${pathname}${links.as_typed}`}>
              {text}
            </Link>
          ),
        }}
      />
    </p>
  );
};

export const Pages = ({ pages, pathname }) => {
  const intl = useIntl();
  if (!pages.length) return null;
  return (
    <nav aria-label={intl.formatMessage(messages.pages)}>
      <div className="ui pagination menu pgcatalog-pages">
        {pages.map(({ label, query, rel, is_present: isPresent }) => (
          <Link
            aria-current={isPresent ? 'page' : undefined}
            className={`item${isPresent ? ' active' : ''}`}
            key={label}
            rel={rel || undefined}
            to={`${pathname}${query}`}
          >
            {messages[label] ? intl.formatMessage(messages[label]) : label}
          </Link>
        ))}
      </div>
    </nav>
  );
};

/** A part of the page with the heading `title`. */
const Part = ({ children, className, id, isSilent, title }) => (
  <section aria-labelledby={id} className={className}>
    <h2 className={isSilent ? 'visually-hidden' : undefined} id={id}>
      <FormattedMessage {...title} />
    </h2>
    {children}
  </section>
);

const Tips = ({ data, pathname }) => {
  const tips = [
    data.has_stop_words_only && messages.addWord,
    data.text && messages.spelling,
    data.text && messages.otherWords,
  ].filter(Boolean);
  return (
    <Part
      className="ui segment pgcatalog-tips"
      id="pgcatalog-tips"
      title={messages.tips}
    >
      <ul>
        {tips.map((tip) => (
          <li key={tip.id}>
            <FormattedMessage {...tip} />
          </li>
        ))}
        {data.chips.length > 0 && (
          <li>
            <Link rel="nofollow" to={`${pathname}${data.links.unfiltered}`}>
              <FormattedMessage {...messages.noFilters} />
            </Link>
          </li>
        )}
        <li>
          <Link to={pathname}>
            <FormattedMessage {...messages.all} />
          </Link>
        </li>
      </ul>
    </Part>
  );
};

/** The address of the feed `url` of the site, through the API that every front-end has. */
export const feedOf = (url) => `/++api++${flattenToAppURL(url)}`;

const Feed = ({ url }) => (
  <p className="pgcatalog-rss">
    <a href={feedOf(url)} rel="nofollow">
      <Icon name={rssSVG} size="18px" />
      <FormattedMessage {...messages.rss} />
    </a>
  </p>
);

const Results = ({ data, pathname, onChange }) => {
  const { also_about: also, chips, items, items_total: total, links } = data;
  const failed = (data.failed_sites || []).join(', ');
  return (
    <div className="pgcatalog-results" {...countOpened(data)}>
      <div className="pgcatalog-status">
        <p className="items_total" role="status">
          <FormattedMessage
            {...(data.items_total_exact ? messages.hits : messages.manyHits)}
            values={{ number: total }}
          />
        </p>
        {total > 0 && <Order data={data} onChange={onChange} />}
      </div>
      <Chips
        all={{ to: `${pathname}${links.unfiltered}` }}
        chips={chips.map(({ query, ...chip }) => ({
          ...chip,
          to: `${pathname}${query}`,
        }))}
      />
      <Correction data={data} pathname={pathname} />
      {failed && (
        <p className="ui warning message" role="alert">
          <FormattedMessage {...messages.failedSites} values={{ failed }} />
        </p>
      )}
      {items.length > 0 && (
        <Part id="pgcatalog-hits" isSilent title={messages.results}>
          <ol className="pgcatalog-hits" start={data.start + 1}>
            {items.map((item) => (
              <Hit item={item} key={item['@id']} pathname={pathname} />
            ))}
          </ol>
          <Pages pages={data.pages} pathname={pathname} />
        </Part>
      )}
      {also.length > 0 && (
        <Part className="also-about" id="pgcatalog-also" title={messages.also}>
          <ul className="pgcatalog-hits">
            {also.map((item) => (
              <Hit
                isByMeaning
                item={item}
                key={item['@id']}
                pathname={pathname}
              />
            ))}
          </ul>
        </Part>
      )}
      {!items.length && <Tips data={data} pathname={pathname} />}
      {links.rss && <Feed url={links.rss} />}
    </div>
  );
};

export default Results;
