import renderer, { act } from 'react-test-renderer';
import { IntlProvider } from 'react-intl';
import withMoreValues, { SHOWN, firstChoices } from './MoreValues';

const VALUES = [...'abcdefghij'];
const choicesOf = (values) => values.map((value) => ({ value, label: value }));

const Facet = withMoreValues(({ choices }) => (
  <ul>
    {choices.map(({ value }) => (
      <li key={value}>{value}</li>
    ))}
  </ul>
));

const rendered = (values, value) => {
  let tree;
  act(() => {
    tree = renderer.create(
      <IntlProvider locale="en" onError={() => {}}>
        <Facet
          facet={{ title: 'Tags' }}
          choices={choicesOf(values)}
          value={value}
        />
      </IntlProvider>,
    );
  });
  return {
    shown: () => tree.root.findAllByType('li').map((item) => item.children[0]),
    buttons: () => tree.root.findAllByType('button'),
  };
};

describe('A facet with many values', () => {
  it('shows six, and all of them on demand', () => {
    const { shown, buttons } = rendered(VALUES);
    expect(shown()).toEqual(VALUES.slice(0, SHOWN));
    expect(SHOWN).toBe(6);
    expect(buttons()[0].props['aria-label']).toBe('Show more: Tags');
    expect(buttons()[0].props['aria-expanded']).toBe(false);
    act(() => buttons()[0].props.onClick());
    expect(shown()).toEqual(VALUES);
    expect(buttons()[0].children).toEqual(['Show less']);
    act(() => buttons()[0].props.onClick());
    expect(shown()).toEqual(VALUES.slice(0, SHOWN));
  });
  it('keeps what is chosen in sight and in its place', () => {
    const { shown } = rendered(VALUES, [{ value: 'j' }, { value: 'b' }]);
    expect(shown()).toEqual([...'abcdej']);
    expect(rendered(VALUES, { value: 'h' }).shown()).toEqual([...'abcdeh']);
  });
});

it('A facet with few values has no button', () => {
  const { shown, buttons } = rendered(VALUES.slice(0, SHOWN));
  expect(shown()).toHaveLength(SHOWN);
  expect(buttons()).toEqual([]);
});

it('All chosen values are shown', () => {
  expect(firstChoices(choicesOf(VALUES), VALUES.slice(0, 8))).toHaveLength(8);
});
