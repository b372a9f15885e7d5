// The second tab of Search Tuning: a preview of the settings in the form before they are saved, and what visitors search for.
// Volto's form is around it, so that buttons and Enter must not send that.
import { useCallback, useEffect, useRef, useState } from 'react';
import { FormattedMessage, useIntl } from 'react-intl';
import { useDispatch } from 'react-redux';
import withObjectBrowser from '@plone/volto/components/manage/Sidebar/ObjectBrowser';
import { flattenToAppURL } from '@plone/volto/helpers/Url/Url';
import Button from './Button';
import Hits from './Hits';
import Replay from './Replay';
import Searches from './Searches';
import messages from './messages';
import { WIDGET } from './schema';
import './tuning.css';

/** Returns the messages in the error of a request: of each refused field, or of the whole request. */
export const problemsOf = (error) => {
  const message = error?.response?.body?.message || '';
  try {
    return JSON.parse(message).map((each) => each.message);
  } catch {
    return message ? [message] : [];
  }
};

const Field = ({ id, label, onChange, onEnter, children, ...props }) => (
  <div className="pgcatalog-field">
    <label htmlFor={id}>
      <FormattedMessage {...label} />
    </label>
    <div className="ui fluid action input">
      <input
        id={id}
        onChange={({ target }) => onChange(target.value)}
        onKeyDown={(event) => {
          if (event.key === 'Enter') {
            event.preventDefault();
            onEnter?.();
          }
        }}
        type="text"
        {...props}
      />
      {children}
    </div>
  </div>
);

/** Two fields that become a line of a setting, below a heading that opens them. */
const Addition = ({ summary, isOpen, onToggle, fields, onAdd, browse }) => (
  <details open={isOpen} onToggle={({ target }) => onToggle(target.open)}>
    <summary>
      <FormattedMessage {...summary} />
    </summary>
    {fields.map(({ id, ...field }) => (
      <Field key={id} id={id} onEnter={onAdd} {...field}>
        {field.label === messages.page && (
          <Button label={messages.browse} onClick={browse} />
        )}
      </Field>
    ))}
    <Button label={messages.add} onClick={onAdd} />
  </details>
);

const Notes = ({ idlePins, findings }) => (
  <>
    {findings.length > 0 && (
      <section className="ui warning message visible" id="pgcatalog-findings">
        <h3>
          <FormattedMessage {...messages.findings} />
        </h3>
        <ul>
          {findings.map(({ field, line, message, title }) => (
            <li key={`${field} ${line}`}>
              {title}: {message}
            </li>
          ))}
        </ul>
      </section>
    )}
    {idlePins.length > 0 && (
      <section id="pgcatalog-idle-pins">
        <h3>
          <FormattedMessage {...messages.idlePins} />
        </h3>
        <ul>
          {idlePins.map(({ words, target, ended, begins }, number) => (
            <li key={number}>
              {words}: {target} –{' '}
              <FormattedMessage
                {...(ended ? messages.ended : messages.begins)}
                values={{ day: ended || begins }}
              />
            </li>
          ))}
        </ul>
      </section>
    )}
  </>
);

const EMPTY = { hits: null, sections: [], idle_pins: [], findings: [] };

export const Tuning = ({ formData, onChange, openObjectBrowser }) => {
  const dispatch = useDispatch();
  const intl = useIntl();
  const [text, setText] = useState('');
  const [section, setSection] = useState('');
  const [answer, setAnswer] = useState(EMPTY);
  const [problems, setProblems] = useState([]);
  const [opened, setOpened] = useState(null);
  const [values, setValues] = useState({ page: '', other: '' });
  const [words, setWords] = useState('');
  const box = useRef(null);
  const latest = useRef(0);

  const preview = useCallback(
    (tried, settings, more = {}) => {
      const number = ++latest.current;
      const { [WIDGET]: _, ...saved } = settings;
      const request = {
        op: 'post',
        path: '/@pgcatalog-preview',
        data: { text: tried, settings: saved, ...more },
      };
      return dispatch({ type: 'PGCATALOG_PREVIEW', request }).then(
        (result) => {
          // A later request has been sent.
          if (number !== latest.current) return false;
          setAnswer(result);
          setProblems([]);
          return true;
        },
        (error) => {
          if (number === latest.current) {
            const found = problemsOf(error);
            const failed = intl.formatMessage(messages.failed);
            setProblems(found.length ? found : [failed]);
          }
          return false;
        },
      );
    },
    [dispatch, intl],
  );
  useEffect(() => {
    preview('', formData);
    // Once: later on, a button requests it.
    // eslint-disable-next-line react-hooks/exhaustive-deps
  }, []);

  const tryText = (tried = text, changed = {}) => {
    setText(tried);
    return preview(tried, { ...formData, ...changed }, { section });
  };
  /** Tries `tried` with one more line of the setting `name`, and puts it into the form if it can be read. */
  const addLine = (name, line, tried) => {
    const lines = [formData[name]?.trimEnd(), line].filter(Boolean).join('\n');
    tryText(tried, { [name]: lines }).then(
      (isRead) => isRead && onChange(name, lines),
    );
  };
  const addPin = (page, tried) =>
    addLine('pins', `${tried.replace(/=/g, ' ')} = ${page}`, tried);
  const open = (name, chosen) => {
    setOpened(name);
    setWords(chosen);
    setValues({ page: '', other: '' });
    tryText(chosen);
  };
  useEffect(() => {
    if (!opened) return;
    const id = opened === 'pin' ? 'pgcatalog-page' : 'pgcatalog-other';
    box.current.querySelector(`#${id}`)?.focus();
  }, [opened, words]);

  const set = (name) => (value) => setValues({ ...values, [name]: value });
  const toggle = (name) => (isOpen) => {
    if (isOpen && opened !== name) {
      setOpened(name);
      setWords(text);
    } else if (!isOpen && opened === name) setOpened(null);
  };
  const browse = () =>
    openObjectBrowser({
      mode: 'link',
      overlay: true,
      currentPath: '/',
      onSelectItem: (url) => set('page')(flattenToAppURL(url)),
    });
  const wordsField = (id, label) => ({
    id,
    label,
    value: words,
    onChange: setWords,
  });
  return (
    <div className="pgcatalog-tuning" id="pgcatalog-tuning" ref={box}>
      <section aria-labelledby="pgcatalog-try">
        <h2 id="pgcatalog-try">
          <FormattedMessage {...messages.tryQuery} />
        </h2>
        <p className="discreet">
          <FormattedMessage {...messages.tryHelp} />
        </p>
        <Field
          id="pgcatalog-query"
          label={messages.query}
          onChange={setText}
          onEnter={() => tryText()}
          value={text}
        >
          <Button
            className="primary"
            label={messages.try}
            onClick={() => tryText()}
          />
        </Field>
        {answer.sections.length > 0 && (
          <div className="pgcatalog-field">
            <label htmlFor="pgcatalog-section">
              <FormattedMessage {...messages.section} />
            </label>
            <select
              id="pgcatalog-section"
              onChange={({ target }) => setSection(target.value)}
              value={section}
            >
              <option value="">{intl.formatMessage(messages.wholeSite)}</option>
              {answer.sections.map((each) => (
                <option key={each}>{each}</option>
              ))}
            </select>
          </div>
        )}
        <div aria-live="polite">
          {problems.map((problem) => (
            <p className="ui negative message" key={problem} role="alert">
              {problem}
            </p>
          ))}
          <Hits hits={answer.hits} onPin={(uid) => addPin(uid, text)} />
        </div>
        <Addition
          browse={browse}
          fields={[
            wordsField('pgcatalog-pin-words', messages.forSearches),
            {
              id: 'pgcatalog-page',
              label: messages.page,
              value: values.page,
              onChange: set('page'),
            },
          ]}
          isOpen={opened === 'pin'}
          onAdd={() => addPin(values.page, words)}
          onToggle={toggle('pin')}
          summary={messages.pinPage}
        />
        <Addition
          fields={[
            wordsField('pgcatalog-word', messages.word),
            {
              id: 'pgcatalog-other',
              label: messages.meansSame,
              value: values.other,
              onChange: set('other'),
            },
          ]}
          isOpen={opened === 'synonym'}
          onAdd={() => addLine('synonyms', `${words}, ${values.other}`, words)}
          onToggle={toggle('synonym')}
          summary={messages.addSynonym}
        />
      </section>
      <Notes findings={answer.findings} idlePins={answer.idle_pins} />
      <Searches
        onPin={(chosen) => open('pin', chosen)}
        onSynonym={(chosen) => open('synonym', chosen)}
        onTry={(chosen) => tryText(chosen)}
      >
        <Replay
          onCompare={() => preview(text, formData, { section, replay: true })}
          onTry={(chosen) => tryText(chosen)}
          replay={answer.replay}
        />
      </Searches>
    </div>
  );
};

export default withObjectBrowser(Tuning);
