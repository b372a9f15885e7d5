// A facet with counts, of the search page and of search blocks.
import { useState } from 'react';
import { FormattedMessage, useIntl } from 'react-intl';
import messages from './messages';
import './page.css';

// From so many values on, a facet has a field to find one.
const MANY = 10;

const Values = ({ facet, values, isChosen, choose, input }) => (
  <ul className="pgcatalog-values">
    {values.map(({ value, title, count, parts }) => {
      const id = `facet-${facet.name}-${value}`;
      return (
        <li key={value}>
          <label htmlFor={id}>
            <input
              checked={isChosen(value)}
              id={id}
              name={facet.field}
              onChange={({ target }) => choose(value, target.checked)}
              type="checkbox"
              value={value}
              {...input}
            />
            <span className="pgcatalog-value" dir="auto">
              {title}
            </span>
            {count !== null && <span className="pgcatalog-count">{count}</span>}
          </label>
          {parts.length > 0 && (
            <Values
              facet={facet}
              values={parts}
              isChosen={isChosen}
              choose={choose}
              input={input}
            />
          )}
        </li>
      );
    })}
  </ul>
);

const More = ({ facet, values, ...choice }) => {
  const intl = useIntl();
  const [part, setPart] = useState('');
  const label = intl.formatMessage(messages.findValue, { title: facet.title });
  const wanted = part.trim().toLocaleLowerCase();
  const isWanted = ({ value, title }) =>
    choice.isChosen(value) || title.toLocaleLowerCase().includes(wanted);
  return (
    <details className="pgcatalog-more-values">
      <summary>
        <FormattedMessage {...messages.more} />
        <span className="visually-hidden">: {facet.title}</span>
      </summary>
      {values.length >= MANY && (
        <div className="ui fluid mini input">
          <input
            aria-label={label}
            onChange={({ target }) => setPart(target.value)}
            onKeyDown={(event) =>
              event.key === 'Enter' && event.preventDefault()
            }
            placeholder={label}
            type="search"
            value={part}
          />
        </div>
      )}
      <Values facet={facet} values={values.filter(isWanted)} {...choice} />
    </details>
  );
};

/**
 * A facet: its first `shown` values, and the others on demand.
 *
 * - `facet`: `{ name, field, title, shown, values: [{ value, title, count, parts }] }`, as of @pgsearch; `name` is unique on a page.
 * - `isChosen(value)`, `choose(value, isChosen)`; `input`: more attributes of the inputs.
 */
const Facet = ({ facet, ...choice }) => {
  const more = facet.values.slice(facet.shown);
  return (
    <fieldset data-facet={facet.name}>
      <legend>{facet.title}</legend>
      <Values
        facet={facet}
        values={facet.values.slice(0, facet.shown)}
        {...choice}
      />
      {more.length > 0 && <More facet={facet} values={more} {...choice} />}
    </fieldset>
  );
};

export default Facet;
