// Words and titles for the search field in the header while somebody types: the browser's own list (datalist).
import { useEffect, useState } from 'react';
import { useDispatch, useSelector } from 'react-redux';
import { flattenToAppURL } from '@plone/volto/helpers/Url/Url';

const LIST = 'pgcatalog-suggestions';
const FIELD = 'input[name="SearchableText"]';
const PAUSE = 200;

/** Returns the texts that a field with `text` may become, of an answer of @pgsuggest: words first, then titles. */
export const completions = (text, { terms = [], suggestions = [] }) => {
  const before = text.slice(0, text.search(/\S*$/));
  return [
    ...new Set([
      ...terms.map((term) => before + term),
      ...suggestions.map(({ title }) => title),
    ]),
  ];
};

const Suggestions = () => {
  const dispatch = useDispatch();
  // The site, or its folder of the language in which the page is.
  const root = useSelector((state) =>
    flattenToAppURL(state.navroot?.data?.navroot?.['@id'] || ''),
  );
  const [texts, setTexts] = useState([]);
  useEffect(() => {
    let timer = null;
    let typed = '';
    const ask = () => {
      const path = `${root}/@pgsuggest?query=${encodeURIComponent(typed)}`;
      const asked = typed;
      dispatch({
        type: 'PGCATALOG_SUGGEST',
        request: { op: 'get', path },
      }).then(
        (answer) => asked === typed && setTexts(completions(asked, answer)),
        // A site without plone.pgcatalog has no such service.
        () => setTexts([]),
      );
    };
    const onInput = ({ target }) => {
      if (!target.matches?.(FIELD)) return;
      target.setAttribute('list', LIST);
      typed = target.value.trimStart();
      clearTimeout(timer);
      if (typed) timer = setTimeout(ask, PAUSE);
      else setTexts([]);
    };
    document.addEventListener('input', onInput);
    return () => {
      clearTimeout(timer);
      document.removeEventListener('input', onInput);
    };
  }, [dispatch, root]);
  return (
    <datalist id={LIST}>
      {texts.map((text) => (
        <option key={text} value={text} />
      ))}
    </datalist>
  );
};

export default Suggestions;
