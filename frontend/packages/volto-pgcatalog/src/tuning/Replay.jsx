// The most frequent searches with the saved settings and with those in the form.
import { FormattedMessage } from 'react-intl';
import Button from './Button';
import messages from './messages';

const FIGURES = [
  ['searches', 'compared'],
  ['first', 'first'],
  ['five', 'five'],
  ['total', 'total'],
];

const Changed = ({ changed, onTry }) => (
  <table className="ui table" id="pgcatalog-changed">
    <thead>
      <tr>
        {['search', 'first', 'hits', 'action'].map((name) => (
          <th key={name} scope="col">
            <span className={name === 'action' ? 'visually-hidden' : undefined}>
              <FormattedMessage {...messages[name]} />
            </span>
          </th>
        ))}
      </tr>
    </thead>
    <tbody>
      {changed.map((each) => (
        <tr key={each.words}>
          <td className="pgcatalog-wide" dir="auto">
            {each.words} ({each.searches})
          </td>
          <td>
            {each.has_other_first && <FormattedMessage {...messages.yes} />}
          </td>
          <td>
            {each.total_before}
            {each.total !== each.total_before && ` → ${each.total}`}
          </td>
          <td>
            <Button
              about={each.words}
              label={messages.try}
              onClick={() => onTry(each.words)}
            />
          </td>
        </tr>
      ))}
    </tbody>
  </table>
);

const Replay = ({ replay, onCompare, onTry }) => (
  <div className="pgcatalog-replay">
    <Button label={messages.compare} onClick={onCompare} />
    <p className="discreet">
      <FormattedMessage {...messages.compareHelp} />
    </p>
    <div aria-live="polite">
      {replay && (
        <ul id="pgcatalog-compared">
          {FIGURES.map(([name, label]) => (
            <li key={name}>
              <FormattedMessage {...messages[label]} />: {replay[name]}
            </li>
          ))}
          {replay.left > 0 && (
            <li>
              <FormattedMessage {...messages.left} />: {replay.left}
            </li>
          )}
        </ul>
      )}
    </div>
    {replay?.changed.length > 0 && (
      <Changed changed={replay.changed} onTry={onTry} />
    )}
  </div>
);

export default Replay;
