import { createRoot } from 'react-dom/client';
import { act } from 'react-dom/test-utils';
import { IntlProvider } from 'react-intl';
import { Provider } from 'react-redux';
import { MemoryRouter, Route } from 'react-router-dom';
import configureStore from 'redux-mock-store';
import config from '@plone/volto/registry';
import Panel, { optionsOf } from './Panel';

global.IS_REACT_ACT_ENVIRONMENT = true;

let root = null;
afterEach(() => act(() => root?.unmount()));

const PAGE = { '@id': 'http://site/a', '@type': 'Document', title: 'A', type_title: 'Page' };

// A field in which texts are typed on a page below `site`, and the requests that this sends.
const field = (site, answer) => {
  jest.useFakeTimers();
  config.settings = {
    publicURL: 'http://site',
    apiPath: '',
    internalApiPath: '',
    contentIcons: { File: { attributes: {} } },
  };
  document.body.innerHTML =
    '<form><div class="searchbox"><input name="SearchableText"></div></form><div id="root"></div>';
  const paths = [];
  const aborted = [];
  const ask = () => () => (action) => {
    const promise = answer ? Promise.resolve(answer) : Promise.reject(new Error('404'));
    promise.request = { abort: () => aborted.push(action.request.path) };
    paths.push(action.request.path);
    return promise;
  };
  const navroot = site && { data: { navroot: { '@id': site } } };
  root = createRoot(document.getElementById('root'));
  act(() =>
    root.render(
      <Provider store={configureStore([ask])({ navroot })}>
        <IntlProvider locale="en" onError={() => {}}>
          <MemoryRouter>
            <Panel />
            <Route render={({ location: l }) => <output>{l.pathname + l.search}</output>} />
          </MemoryRouter>
        </IntlProvider>
      </Provider>,
    ),
  );
  const input = document.querySelector('input');
  return {
    aborted,
    input,
    paths,
    type: async (...texts) => {
      await act(async () => {
        texts.forEach((text) => {
          input.value = text;
          input.dispatchEvent(new Event('input', { bubbles: true }));
        });
      });
      await act(async () => jest.runAllTimers());
    },
    press: (key) => {
      const event = new KeyboardEvent('keydown', { key, bubbles: true, cancelable: true });
      act(() => void input.dispatchEvent(event));
      return event.defaultPrevented;
    },
    options: () => [...document.querySelectorAll('[role="option"]')],
    location: () => document.querySelector('output').textContent,
  };
};
const ANSWER = { terms: ['grün'], suggestions: [PAGE] };

describe('the panel', () => {
  it.each([
    ['http://site', ''],
    ['http://site/de', '/de'],
    [undefined, ''],
  ])('has words and pages of %s', async (site, path) => {
    const { options, paths, type } = field(site, ANSWER);
    await type('rot & ', 'rot & g');
    expect(paths).toEqual([`${path}/@pgsuggest?query=rot%20%26%20g`]);
    expect(options().map((option) => option.textContent)).toEqual([
      'rot & grün',
      'APage',
      'All results for rot & g',
    ]);
  });
  it('is not there without the service, nor without a text', async () => {
    const without = field('http://site', null);
    await without.type('gr');
    expect(without.options()).toEqual([]);
    act(() => root.unmount());
    const { options, type } = field('http://site', ANSWER);
    await type('gr');
    await type('');
    expect(options()).toEqual([]);
  });
  it('is a combobox for arrows, Enter and Escape', async () => {
    const { input, location, options, press, type } = field('http://site', ANSWER);
    await type('gr');
    expect(input.getAttribute('aria-expanded')).toBe('true');
    expect(press('Enter')).toBe(false);
    await type('g');
    expect(press('ArrowUp')).toBe(true);
    expect(input.getAttribute('aria-activedescendant')).toBe(options()[2].id);
    press('ArrowDown');
    expect(input.hasAttribute('aria-activedescendant')).toBe(false);
    press('ArrowDown');
    press('ArrowDown');
    expect(options()[1].getAttribute('aria-selected')).toBe('true');
    press('Escape');
    expect(options()).toEqual([]);
    expect(input.getAttribute('aria-expanded')).toBe('false');
    await type('gr');
    press('ArrowDown');
    expect(press('Enter')).toBe(true);
    expect(location()).toBe('/search?SearchableText=gr%C3%BCn');
    expect(options()).toEqual([]);
  });
  it('follows a click, and closes when the field is left', async () => {
    const { input, location, options, type } = field('http://site', ANSWER);
    await type('gr');
    act(() => options()[1].click());
    expect(location()).toBe('/a');
    await type('gru');
    act(() => void input.dispatchEvent(new FocusEvent('focusout', { bubbles: true })));
    expect(options()).toEqual([]);
  });
  it('aborts the request for the former letters', async () => {
    const { aborted, paths, type } = field('http://site', ANSWER);
    await type('g');
    await type('gr');
    expect(paths).toHaveLength(2);
    expect(aborted).toEqual(paths.slice(0, 1));
  });
});

it('Three words, five pages and all hits are offered, and not what is typed already', () => {
  const terms = ['hed', 'hedge', 'hedgehog', 'hedges', 'hedging'];
  const suggestions = [...'abcdefg'].map((title) => ({ ...PAGE, title }));
  expect(optionsOf('small hed', '', { terms, suggestions }).map(({ title }) => title)).toEqual([
    ...['small hedge', 'small hedgehog', 'small hedges'],
    ...'abcde',
    'small hed',
  ]);
  expect(optionsOf('x', '', {})).toHaveLength(1);
});
