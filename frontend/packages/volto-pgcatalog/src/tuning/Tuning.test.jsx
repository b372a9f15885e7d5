import { createRoot } from 'react-dom/client';
import { act } from 'react-dom/test-utils';
import { IntlProvider } from 'react-intl';
import { Provider } from 'react-redux';
import { MemoryRouter } from 'react-router-dom';
import configureStore from 'redux-mock-store';
import config from '@plone/volto/registry';
import { countOpened } from '../page/opened';
import { Tuning, problemsOf } from './Tuning';
import { LISTS } from './Searches';

jest.mock(
  '@plone/volto/components/manage/Sidebar/ObjectBrowser',
  () => (component) => component,
);
jest.mock(
  '@plone/volto/components/manage/UniversalLink/UniversalLink',
  () =>
    ({ href, children }) => <a href={href}>{children}</a>,
);
global.IS_REACT_ACT_ENVIRONMENT = true;

let root = null;
afterEach(() => act(() => root?.unmount()));

const HIT = {
  '@id': 'http://site/a',
  UID: 'u1',
  title: 'A',
  place: 1,
  place_before: 3,
  shares: [{ part: 'body', percent: 60 }],
  boost: 1,
  half_life: 0,
  by_words: null,
  by_meaning: null,
};
const PREVIEW = {
  hits: [HIT],
  sections: ['/en'],
  idle_pins: [
    { words: 'owls', target: '/x', ended: '2001-01-01', begins: null },
  ],
  findings: [
    {
      field: 'pins',
      title: 'Pinned pages',
      line: 2,
      message: 'Line 2: nowhere',
    },
  ],
  replay: null,
};
const REPLAY = {
  searches: 50,
  first: 1,
  five: 2,
  total: 3,
  left: 0,
  changed: [],
};
const LISTED = {
  words: 'tv',
  searches: 7,
  without_results: 6,
  corrected: 0,
  correction: '',
};
const SEARCHES = {
  counted: true,
  days: 28,
  weeks: [{ week: '2026-11-23', searches: 7 }],
  ...Object.fromEntries(
    LISTS.map(([name], number) => [name, number ? [] : [LISTED]]),
  ),
};

// The tab over the form `formData`; `refused` refuses all previews with a text.
const tab = async (formData, refused) => {
  config.settings = {
    publicURL: 'http://site',
    apiPath: '',
    internalApiPath: '',
  };
  document.body.innerHTML = '<form><div id="root"></div></form>';
  const sent = [];
  const changes = [];
  const answer = ({ op, data, path }) => {
    sent.push(data || path);
    if (op === 'get') return Promise.resolve(SEARCHES);
    if (refused && data.text) {
      return Promise.reject({ response: { body: { message: refused } } });
    }
    return Promise.resolve({ ...PREVIEW, replay: data.replay ? REPLAY : null });
  };
  const store = configureStore([
    () =>
      () =>
      ({ request }) =>
        answer(request),
  ])({});
  root = createRoot(document.getElementById('root'));
  await act(async () =>
    root.render(
      <Provider store={store}>
        <IntlProvider locale="en" onError={() => {}}>
          <MemoryRouter>
            <Tuning
              formData={formData}
              onChange={(...change) => changes.push(change)}
            />
          </MemoryRouter>
        </IntlProvider>
      </Provider>,
    ),
  );
  const find = (css) => document.querySelector(css);
  return {
    changes,
    sent,
    text: () => document.body.textContent,
    click: (label) =>
      act(async () =>
        [...document.querySelectorAll('button')]
          .find(({ textContent }) => textContent === label)
          .click(),
      ),
    type: (css, value) =>
      act(async () => {
        const field = find(css);
        Object.getOwnPropertyDescriptor(
          Object.getPrototypeOf(field),
          'value',
        ).set.call(field, value);
        field.dispatchEvent(
          new Event(field.tagName === 'SELECT' ? 'change' : 'input', {
            bubbles: true,
          }),
        );
      }),
  };
};

it('shows idle pins, lines without effect and searches before anything is tried', async () => {
  const { sent, text } = await tab({ pins: 'a = /b', pgcatalog_tuning: 1 });
  expect(sent).toEqual(
    expect.arrayContaining([
      { text: '', settings: { pins: 'a = /b' } },
      '/@pgcatalog-searches',
    ]),
  );
  [
    'owls: /x – ended on 2001-01-01',
    'Pinned pages: Line 2: nowhere',
    'tv 7',
  ].forEach((each) => expect(text()).toContain(each));
});

it('turns a listed search into a synonym, by one click and a word', async () => {
  const { changes, click, sent, type } = await tab({ synonyms: 'a, b\n' });
  await click('Add a synonym: tv');
  expect(sent.at(-1)).toMatchObject({
    text: 'tv',
    settings: { synonyms: 'a, b\n' },
  });
  expect(document.querySelector('#pgcatalog-word').value).toBe('tv');
  expect(document.activeElement.id).toBe('pgcatalog-other');
  expect(changes).toEqual([]);
  await type('#pgcatalog-other', 'television');
  await act(async () => {
    const enter = { key: 'Enter', bubbles: true, cancelable: true };
    const event = new KeyboardEvent('keydown', enter);
    document.activeElement.dispatchEvent(event);
    expect(event.defaultPrevented).toBe(true);
  });
  expect(changes).toEqual([['synonyms', 'a, b\ntv, television']]);
  expect(sent.at(-1)).toMatchObject({
    text: 'tv',
    settings: { synonyms: 'a, b\ntv, television' },
  });
});

it('pins a hit, in a section', async () => {
  const { changes, click, sent, type } = await tab({});
  await type('#pgcatalog-query', 'a = b');
  await type('#pgcatalog-section', '/en');
  await click('Try');
  expect(sent.at(-1)).toMatchObject({ text: 'a = b', section: '/en' });
  await click('Pin: A');
  expect(changes).toEqual([['pins', 'a   b = u1']]);
});

it('puts nothing into the form that is refused', async () => {
  const message = JSON.stringify([{ message: 'Line 1: wrong' }]);
  const { changes, click, text, type } = await tab({}, message);
  await click('Pin a page: tv');
  await type('#pgcatalog-page', '?');
  await click('Add to the form and try');
  expect(changes).toEqual([]);
  expect(text()).toContain('Line 1: wrong');
});

it('compares the most frequent searches', async () => {
  const { click, sent, text } = await tab({ pins: 'a = /b' });
  await click('Compare the most frequent searches');
  expect(sent.at(-1)).toMatchObject({
    replay: true,
    settings: { pins: 'a = /b' },
  });
  expect(text()).toContain('Compared searches: 50');
});

it.each([
  [undefined, []],
  ['no JSON', ['no JSON']],
  ['[{"message": "a"}]', ['a']],
])('reads the error %s', (message, problems) => {
  expect(problemsOf({ response: { body: { message } } })).toEqual(problems);
});

describe('the beacon of an opened hit', () => {
  const opened = (data, html) => {
    document.body.innerHTML = html;
    global.fetch = jest.fn(() => Promise.resolve());
    countOpened(data).onClickCapture?.({
      button: 0,
      target: document.querySelector('b'),
    });
    return global.fetch.mock.calls;
  };
  const hit = '<h3 class="tileHeadline"><a href="/x"><b>x</b></a></h3>';
  it('has the words and no cookies', () => {
    const [[path, options]] = opened({ counts_opened: true, text: 'a b' }, hit);
    expect(path).toBe('/++api++/@pgcatalog-opened');
    expect(options).toMatchObject({
      credentials: 'omit',
      keepalive: true,
      body: '{"text":"a b"}',
    });
  });
  it('is sent for hits only, if the site counts them', () => {
    expect(opened({ counts_opened: false, text: 'a' }, hit)).toEqual([]);
    expect(
      opened({ counts_opened: true, text: 'a' }, '<a href="/x"><b>x</b></a>'),
    ).toEqual([]);
  });
});
