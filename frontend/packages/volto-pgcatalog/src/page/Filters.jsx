// The facets: beside the hits on a large screen, in a drawer on a small one.
import { useEffect, useRef, useState } from 'react';
import { FormattedMessage, useIntl } from 'react-intl';
import { Link } from 'react-router-dom';
import { allValues } from './data';
import messages from './messages';

// From so many values on, a facet has a field to find one.
const MANY = 10;

const keyOf = (field, value) => `${field} ${value}`;

/** Returns the keys of the chosen values of `facets`. */
const chosenIn = (facets) =>
  new Set(
    allValues(facets)
      .filter(([, value]) => value.is_chosen)
      .map(([field, { value }]) => keyOf(field, value)),
  );

const Values = ({ facet, values, isChosen, choose }) => (
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

export const Facet = ({ facet, ...choice }) => {
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

const FOCUSABLE = 'button, input, summary, a[href]';

/** Keeps the focus in the open drawer `ref`, and closes it with Escape. */
const useDrawer = (ref, isOpen, close) => {
  useEffect(() => {
    if (!isOpen) return;
    const drawer = ref.current;
    const onKeyDown = (event) => {
      if (event.key === 'Escape') close();
      if (event.key !== 'Tab') return;
      const reachable = [...drawer.querySelectorAll(FOCUSABLE)].filter(
        (element) => element.getClientRects().length,
      );
      const [first, last] = [reachable[0], reachable[reachable.length - 1]];
      const edge = event.shiftKey ? first : last;
      if (document.activeElement === edge) {
        event.preventDefault();
        (event.shiftKey ? last : first).focus();
      }
    };
    drawer.querySelector('button').focus();
    document.addEventListener('keydown', onKeyDown);
    return () => document.removeEventListener('keydown', onKeyDown);
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, [isOpen]);
};

const Filters = ({ data, pathname, onChange }) => {
  const intl = useIntl();
  const { chips, facets, facets_follow: follows } = data;
  const [isOpen, setIsOpen] = useState(false);
  const [chosen, setChosen] = useState(() => chosenIn(facets));
  const drawer = useRef(null);
  const opener = useRef(null);
  // The boxes show what is clicked before the answer comes, so that a second click counts, too.
  useEffect(() => setChosen(chosenIn(facets)), [facets]);
  const close = () => {
    setIsOpen(false);
    opener.current?.focus();
  };
  useDrawer(drawer, isOpen, close);
  if (!facets.length && !follows) return null;

  const choose = (field) => (value, isChosen) => {
    const next = new Set(chosen);
    next[isChosen ? 'add' : 'delete'](keyOf(field, value));
    setChosen(next);
    onChange();
  };
  const title = intl.formatMessage(messages.filter);
  const asDialog = isOpen
    ? { role: 'dialog', 'aria-modal': true, 'aria-label': title }
    : {};
  const { along, unfiltered } = data.links;
  return (
    <div className="pgcatalog-side">
      <noscript
        dangerouslySetInnerHTML={{
          __html:
            '<style>.pgcatalog-filters{display:block!important}.pgcatalog-opener{display:none!important}</style>',
        }}
      />
      <button
        aria-expanded={isOpen}
        className="ui basic fluid button pgcatalog-opener"
        onClick={() => setIsOpen(true)}
        ref={opener}
        type="button"
      >
        {title}
        {chips.length > 0 && (
          <span className="ui circular label">{chips.length}</span>
        )}
      </button>
      <div
        className={`pgcatalog-filters${isOpen ? ' open' : ''}`}
        ref={drawer}
        {...asDialog}
      >
        <div className="pgcatalog-drawer-head">
          <h2>{title}</h2>
          <button type="button" className="ui basic button" onClick={close}>
            <FormattedMessage {...messages.close} />
          </button>
        </div>
        {along && (
          <noscript>
            <a href={`${pathname}${along}`} rel="nofollow">
              {title}
            </a>
          </noscript>
        )}
        <div aria-busy={Boolean(follows)}>
          {facets.map((facet) => (
            <Facet
              choose={choose(facet.field)}
              facet={facet}
              isChosen={(value) => chosen.has(keyOf(facet.field, value))}
              key={facet.name}
            />
          ))}
        </div>
        {chips.length > 1 && (
          <Link
            className="pgcatalog-drawer-only"
            rel="nofollow"
            to={`${pathname}${unfiltered}`}
          >
            <FormattedMessage {...messages.removeAll} />
          </Link>
        )}
        <button
          className="ui primary fluid button pgcatalog-drawer-only"
          onClick={close}
          type="button"
        >
          <FormattedMessage {...messages.show} />
        </button>
        <noscript>
          <button type="submit" className="ui button">
            {intl.formatMessage(messages.apply)}
          </button>
        </noscript>
      </div>
    </div>
  );
};

export default Filters;
