// The hits with everything above and below them: number, order, chips, corrections, pages of results, tips.
import { FormattedMessage, useIntl } from 'react-intl';
import { Link } from 'react-router-dom';
import Hit from './Hit';
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

export const Chips = ({ chips, pathname, unfiltered }) =>
  chips.length > 0 && (
    <section aria-labelledby="pgcatalog-chosen">
      <h2 className="visually-hidden" id="pgcatalog-chosen">
        <FormattedMessage {...messages.chosen} />
      </h2>
      <ul className="pgcatalog-chips">
        {chips.map(({ title, value, query }) => (
          <li key={`${title} ${value}`}>
            <Link
              className="ui basic label"
              rel="nofollow"
              to={`${pathname}${query}`}
            >
              <span className="visually-hidden">
                <FormattedMessage {...messages.remove} />{' '}
              </span>
              {title}: <strong dir="auto">{value}</strong>{' '}
              <span aria-hidden="true">×</span>
            </Link>
          </li>
        ))}
        {chips.length > 1 && (
          <li>
            <Link rel="nofollow" to={`${pathname}${unfiltered}`}>
              <FormattedMessage {...messages.removeAll} />
            </Link>
          </li>
        )}
      </ul>
    </section>
  );

const Correction = ({ data, pathname }) => {
  const { corrected, links, suggestion, text } = data;
  const link = (query, words) => (
    <Link dir="auto" rel="nofollow" to={`${pathname}${query}`}>
      {words}
    </Link>
  );
  if (corrected) {
    return (
      <p className="ui info message pgcatalog-corrected">
        <FormattedMessage
          {...messages.corrected}
          values={{ text: <strong dir="auto">{corrected}</strong> }}
        />
        {' – '}
        <FormattedMessage
          {...messages.instead}
          values={{ text: link(links.as_typed, text) }}
        />
      </p>
    );
  }
  if (!suggestion) return null;
  return (
    <p className="did-you-mean">
      <FormattedMessage
        {...messages.meant}
        values={{ text: link(links.suggestion, suggestion) }}
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

const Tips = ({ data, pathname }) => {
  const tips = [
    data.has_stop_words_only && messages.addWord,
    data.text && messages.spelling,
    data.text && messages.otherWords,
  ].filter(Boolean);
  return (
    <section
      aria-labelledby="pgcatalog-tips"
      className="ui segment pgcatalog-tips"
    >
      <h2 id="pgcatalog-tips">
        <FormattedMessage {...messages.tips} />
      </h2>
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
    </section>
  );
};

const Results = ({ data, pathname, onChange }) => {
  const { also_about: also, chips, items, items_total: total, links } = data;
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
      <Chips chips={chips} pathname={pathname} unfiltered={links.unfiltered} />
      <Correction data={data} pathname={pathname} />
      {items.length > 0 && (
        <section aria-labelledby="pgcatalog-hits">
          <h2 className="visually-hidden" id="pgcatalog-hits">
            <FormattedMessage {...messages.results} />
          </h2>
          <ol className="pgcatalog-hits" start={data.start + 1}>
            {items.map((item) => (
              <Hit item={item} key={item['@id']} pathname={pathname} />
            ))}
          </ol>
          <Pages pages={data.pages} pathname={pathname} />
        </section>
      )}
      {also.length > 0 && (
        <section aria-labelledby="pgcatalog-also" className="also-about">
          <h2 id="pgcatalog-also">
            <FormattedMessage {...messages.also} />
          </h2>
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
        </section>
      )}
      {!items.length && <Tips data={data} pathname={pathname} />}
    </div>
  );
};

export default Results;
