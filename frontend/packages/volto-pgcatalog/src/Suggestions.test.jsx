import { createRoot } from 'react-dom/client';
import { act } from 'react-dom/test-utils';
import { Provider } from 'react-redux';
import configureStore from 'redux-mock-store';
import config from '@plone/volto/registry';
import Suggestions, { completions } from './Suggestions';

global.IS_REACT_ACT_ENVIRONMENT = true;

// What is asked for, and offered, when somebody types `text` on a page below `root`.
const typed = async (text, root, answer) => {
  jest.useFakeTimers();
  config.settings = { publicURL: 'http://site', apiPath: '', internalApiPath: '' };
  document.body.innerHTML = '<input name="SearchableText"><div id="root"></div>';
  const paths = [];
  const ask = () => () => (action) => {
    paths.push(action.request.path);
    return answer ? Promise.resolve(answer) : Promise.reject(new Error('404'));
  };
  const navroot = root && { data: { navroot: { '@id': root } } };
  const store = configureStore([ask])({ navroot });
  act(() =>
    createRoot(document.getElementById('root')).render(
      <Provider store={store}>
        <Suggestions />
      </Provider>,
    ),
  );
  const field = document.querySelector('input');
  await act(async () => {
    [text.slice(0, -1), text].forEach((value) => {
      field.value = value;
      field.dispatchEvent(new Event('input', { bubbles: true }));
    });
    jest.runAllTimers();
  });
  const options = document.querySelectorAll(`#${field.getAttribute('list')} option`);
  return { paths, offered: [...options].map(({ value }) => value) };
};

describe('Suggestions', () => {
  it.each([
    ['http://site', ''],
    ['http://site/de', '/de'],
    [undefined, ''],
  ])('are those of %s', async (root, path) => {
    const { paths, offered } = await typed('rot & g', root, { terms: ['grün'] });
    expect(paths).toEqual([`${path}/@pgsuggest?query=rot%20%26%20g`]);
    expect(offered).toEqual(['rot & grün']);
  });
  it('are none on a site without the service', async () => {
    expect((await typed('gr', 'http://site', null)).offered).toEqual([]);
  });
});

describe('completions', () => {
  it('end the last word, and add titles', () => {
    const answer = {
      terms: ['hedgehog', 'hedge'],
      suggestions: [{ title: 'A small hedge' }, { title: 'small hedge' }],
    };
    expect(completions('small hed', answer)).toEqual([
      'small hedgehog',
      'small hedge',
      'A small hedge',
    ]);
  });
  it('need nothing', () => {
    expect(completions('small', {})).toEqual([]);
  });
});
