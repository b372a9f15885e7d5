// A list of values that shows the first ones, and the others when somebody asks for them, as the search page of Classic UI does.
import { useState } from 'react';
import { defineMessages, useIntl } from 'react-intl';

export const SHOWN = 6;

const messages = defineMessages({
  more: { id: 'Show more', defaultMessage: 'Show more' },
  less: { id: 'Show less', defaultMessage: 'Show less' },
});

/** Returns those of `choices` that are shown at first: what is chosen, and the first others, SHOWN or more in all. */
export const firstChoices = (choices, chosen) => {
  const isChosen = ({ value }) => chosen.includes(value);
  const ordered = [
    ...choices.filter(isChosen),
    ...choices.filter((choice) => !isChosen(choice)),
  ];
  const count = Math.max(SHOWN, choices.filter(isChosen).length);
  const first = new Set(ordered.slice(0, count));
  return choices.filter((choice) => first.has(choice));
};

const withMoreValues = (Facet) => {
  const FacetWithMoreValues = (props) => {
    const { choices, facet, value } = props;
    const intl = useIntl();
    const [isOpen, setIsOpen] = useState(false);
    const chosen = [value].flat().map((each) => each?.value);
    const first = firstChoices(choices, chosen);
    if (first.length === choices.length) return <Facet {...props} />;
    const text = intl.formatMessage(isOpen ? messages.less : messages.more);
    const title = facet?.title ?? facet?.field?.label;
    return (
      <>
        <Facet {...props} choices={isOpen ? choices : first} />
        <button
          type="button"
          className="ui basic tiny button pgcatalog-more"
          aria-expanded={isOpen}
          aria-label={title ? `${text}: ${title}` : text}
          onClick={() => setIsOpen(!isOpen)}
        >
          {text}
        </button>
      </>
    );
  };
  return FacetWithMoreValues;
};

export default withMoreValues;
