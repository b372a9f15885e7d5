// The facets: beside the hits on a large screen, in a drawer on a small one.
import { useEffect, useRef, useState } from 'react';
import { FormattedMessage, useIntl } from 'react-intl';
import { Link } from 'react-router-dom';
import { allValues } from './data';
import Facet from './Facet';
import messages from './messages';

const keyOf = (field, value) => `${field} ${value}`;

/** Returns the keys of the chosen values of `facets`. */
const chosenIn = (facets) =>
  new Set(
    allValues(facets)
      .filter(([, value]) => value.is_chosen)
      .map(([field, { value }]) => keyOf(field, value)),
  );

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
