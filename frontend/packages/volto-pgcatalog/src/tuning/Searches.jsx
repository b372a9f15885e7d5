// What visitors search for: the lists of @pgcatalog-searches, of all weeks or of one, with what to do about each search.
import { useEffect, useState } from 'react';
import { FormattedMessage } from 'react-intl';
import { useDispatch } from 'react-redux';
import Button from './Button';
import messages from './messages';

const PATH = '/@pgcatalog-searches';
/** The lists, in the order of Classic UI, and the number that is shown beside a search. */
export const LISTS = [
  ['top', 'searches'],
  ['without_results', 'without_results'],
  ['corrected', 'corrected'],
  ['unopened', 'searches'],
];

/** Saves `text` as a file; with the mark that spreadsheets need to read UTF-8. */
const download = (text) => {
  const file = new Blob(['\ufeff', text.replace(/^\ufeff/, '')]);
  const link = document.createElement('a');
  link.href = URL.createObjectURL(file);
  link.download = 'searches.csv';
  link.click();
  URL.revokeObjectURL(link.href);
};

const List = ({ name, number, searches, onTry, onSynonym, onPin }) => (
  <section aria-labelledby={`pgcatalog-list-${name}`}>
    <h3 id={`pgcatalog-list-${name}`}>
      <FormattedMessage {...messages[name]} />
    </h3>
    {!searches.length && (
      <p>
        <FormattedMessage {...messages.none} />
      </p>
    )}
    <ul className="pgcatalog-list" id={`pgcatalog-${name}`}>
      {searches.map(({ words, correction, ...numbers }) => (
        <li key={words}>
          <span className="pgcatalog-words" dir="auto">
            {words}
            {correction && ` → ${correction}`}{' '}
            <span className="ui mini label">{numbers[number]}</span>
          </span>
          <span className="pgcatalog-actions">
            <Button
              about={words}
              label={messages.try}
              onClick={() => onTry(words)}
            />
            <Button
              about={words}
              label={messages.addSynonym}
              onClick={() => onSynonym(words)}
            />
            <Button
              about={words}
              label={messages.pinPage}
              onClick={() => onPin(words)}
            />
          </span>
        </li>
      ))}
    </ul>
  </section>
);

const Searches = ({ children, ...actions }) => {
  const dispatch = useDispatch();
  const [week, setWeek] = useState('');
  const [data, setData] = useState(null);
  useEffect(() => {
    let isWanted = true;
    const path = week ? `${PATH}?week=${week}` : PATH;
    dispatch({ type: 'PGCATALOG_SEARCHES', request: { op: 'get', path } }).then(
      (answer) => isWanted && setData(answer),
      () => isWanted && setData(null),
    );
    return () => {
      isWanted = false;
    };
  }, [dispatch, week]);
  const save = () =>
    dispatch({
      type: 'PGCATALOG_SEARCHES_FILE',
      request: { op: 'get', path: `${PATH}.csv` },
    }).then(download, () => {});
  if (!data?.counted) return null;
  return (
    <section aria-labelledby="pgcatalog-searches-title" id="pgcatalog-searches">
      <h2 id="pgcatalog-searches-title">
        <FormattedMessage {...messages.searches} />
      </h2>
      <p className="discreet">
        <FormattedMessage
          {...messages.searchesHelp}
          values={{ days: data.days }}
        />
      </p>
      {data.weeks.length > 0 && (
        <p className="pgcatalog-weeks">
          <Button
            aria-pressed={!week}
            label={messages.allWeeks}
            onClick={() => setWeek('')}
          />
          {data.weeks.map((each) => (
            <Button
              about={each.searches}
              aria-pressed={each.week === week}
              key={each.week}
              label={{ ...messages.week, values: { day: each.week } }}
              onClick={() => setWeek(each.week)}
            />
          ))}
          <Button label={messages.csv} onClick={save} />
        </p>
      )}
      <div className="pgcatalog-lists">
        {LISTS.map(([name, number]) => (
          <List
            key={name}
            name={name}
            number={number}
            searches={data[name]}
            {...actions}
          />
        ))}
      </div>
      {children}
    </section>
  );
};

export default Searches;
