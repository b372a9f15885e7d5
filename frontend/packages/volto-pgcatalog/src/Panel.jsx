// The panel below the search field of the header, while a user types: words to go on with, pages, and a link to all hits.
// The field is Volto's own and becomes a combobox by its attributes; the panel is its list.
import { useCallback, useEffect, useRef, useState } from 'react';
import { createPortal } from 'react-dom';
import { defineMessages, FormattedMessage, useIntl } from 'react-intl';
import { useDispatch, useSelector } from 'react-redux';
import { useHistory } from 'react-router-dom';
import Icon from '@plone/volto/components/theme/Icon/Icon';
import { getContentIcon } from '@plone/volto/helpers/Content/Content';
import { flattenToAppURL } from '@plone/volto/helpers/Url/Url';
import zoomSVG from '@plone/volto/icons/zoom.svg';
import './panel.css';

const LIST = 'pgcatalog-panel';
const FIELD = '.searchbox input[name="SearchableText"]';
const PAUSE = 200;
const LONGEST = 200;
const WORDS = 3;
const PAGES = 5;

const messages = defineMessages({
  label: {
    id: 'Suggestions and pages',
    defaultMessage: 'Suggestions and pages',
  },
  all: {
    id: 'All results for {text}',
    defaultMessage: 'All results for {text}',
  },
});

/** Returns the options for `text` of an answer of @pgsuggest: words, then pages, then all hits. */
export const optionsOf = (text, root, { terms = [], suggestions = [] }) => {
  const before = text.slice(0, text.search(/\S*$/));
  const search = (words) =>
    `${root}/search?SearchableText=${encodeURIComponent(words)}`;
  const words = terms.map((term) => before + term);
  return [
    ...words
      .filter((word) => word !== text)
      .slice(0, WORDS)
      .map((word) => ({ kind: 'word', title: word, to: search(word) })),
    ...suggestions.slice(0, PAGES).map((item) => ({
      kind: 'page',
      title: item.title,
      to: flattenToAppURL(item['@id']),
      item,
    })),
    { kind: 'all', title: text, to: search(text) },
  ];
};

const Option = ({ option, ...props }) => {
  const { item, kind, title } = option;
  return (
    <li role="option" className={`pgcatalog-${kind}`} {...props}>
      <Icon
        name={item ? getContentIcon(item['@type'], false) : zoomSVG}
        size="18px"
      />
      <span dir="auto">
        {kind === 'all' ? (
          <FormattedMessage {...messages.all} values={{ text: title }} />
        ) : (
          title
        )}
      </span>
      {item && (
        <span className="pgcatalog-kind">
          {item.type_title || item['@type']}
        </span>
      )}
    </li>
  );
};

/** Requests suggestions for `typed` after a pause; a request that is under way is aborted. */
const useSuggestions = (typed, root) => {
  const dispatch = useDispatch();
  const [found, setFound] = useState({ text: '', options: [] });
  useEffect(() => {
    if (!typed) {
      setFound({ text: '', options: [] });
      return;
    }
    let isWanted = true;
    let running = null;
    const timer = setTimeout(() => {
      const path = `${root}/@pgsuggest?query=${encodeURIComponent(typed)}`;
      running = dispatch({
        type: 'PGCATALOG_SUGGEST',
        request: { op: 'get', path },
      });
      running.then(
        (answer) =>
          isWanted &&
          setFound({ text: typed, options: optionsOf(typed, root, answer) }),
        // A site without plone.pgcatalog has no such service.
        () => isWanted && setFound({ text: typed, options: [] }),
      );
    }, PAUSE);
    return () => {
      isWanted = false;
      clearTimeout(timer);
      running?.request?.abort();
    };
  }, [dispatch, root, typed]);
  return found;
};

const Panel = () => {
  const history = useHistory();
  const intl = useIntl();
  // The site, or its folder of the language in which the page is.
  const root = useSelector((state) =>
    flattenToAppURL(state.navroot?.data?.navroot?.['@id'] || ''),
  );
  const [field, setField] = useState(null);
  const [typed, setTyped] = useState('');
  const [active, setActive] = useState(-1);
  const { options } = useSuggestions(typed, root);
  const isOpen = Boolean(field && typed && options.length);

  const close = useCallback(() => {
    setTyped('');
    setActive(-1);
  }, []);

  // Before the browser paints: no letter or key may be missed.
  const current = useRef({});
  current.current = { active, close, isOpen, options };

  const follow = (option) => {
    close();
    history.push(option.to);
  };
  current.current.follow = follow;

  useEffect(() => {
    const isField = (target) => target.matches?.(FIELD);
    const onInput = ({ target }) => {
      if (!isField(target)) return;
      setField(target);
      setActive(-1);
      setTyped(target.value.trimStart().slice(0, LONGEST));
    };
    const onKeyDown = (event) => {
      const { active, close, follow, isOpen, options } = current.current;
      if (!isOpen || !isField(event.target)) return;
      const count = options.length + 1;
      const moves = { ArrowDown: 1, ArrowUp: -1 };
      if (event.key in moves) {
        event.preventDefault();
        // The place behind the last option is the field itself.
        setActive(((active + 1 + moves[event.key] + count) % count) - 1);
      } else if (event.key === 'Escape') {
        event.preventDefault();
        close();
      } else if (event.key === 'Enter' && options[active]) {
        event.preventDefault();
        follow(options[active]);
      } else if (event.key === 'Enter') {
        close();
      }
    };
    const onFocusOut = ({ target }) =>
      isField(target) && current.current.close();
    document.addEventListener('input', onInput);
    // First of all: Enter on an option must not send the form.
    document.addEventListener('keydown', onKeyDown, true);
    document.addEventListener('focusout', onFocusOut);
    return () => {
      document.removeEventListener('input', onInput);
      document.removeEventListener('keydown', onKeyDown, true);
      document.removeEventListener('focusout', onFocusOut);
    };
  }, []);

  useEffect(() => {
    if (!field) return;
    const attributes = {
      role: 'combobox',
      'aria-autocomplete': 'list',
      'aria-expanded': String(isOpen),
      'aria-controls': isOpen ? LIST : null,
      'aria-activedescendant':
        isOpen && active >= 0 ? `${LIST}-${active}` : null,
    };
    Object.entries(attributes).forEach(([name, value]) =>
      value === null
        ? field.removeAttribute(name)
        : field.setAttribute(name, value),
    );
  }, [active, field, isOpen]);

  const box = field?.closest('.searchbox');
  if (!isOpen || !box?.isConnected) return null;
  return createPortal(
    <ul
      aria-label={intl.formatMessage(messages.label)}
      className="pgcatalog-panel"
      id={LIST}
      role="listbox"
    >
      {options.map((option, number) => (
        // Keys are those of the field, which keeps the focus.
        // eslint-disable-next-line jsx-a11y/click-events-have-key-events
        <Option
          aria-selected={number === active}
          id={`${LIST}-${number}`}
          key={`${option.kind} ${option.to}`}
          onClick={() => follow(option)}
          onMouseDown={(event) => event.preventDefault()}
          option={option}
        />
      ))}
    </ul>,
    box,
  );
};

export default Panel;
