// The texts of the part of Search Tuning besides the form; those that Classic UI has, too, are the same.
import { defineMessages } from 'react-intl';

export default defineMessages({
  rank: { id: 'Rank', defaultMessage: 'Rank' },
  before: { id: 'With saved settings', defaultMessage: 'With saved settings' },
  found: {
    id: 'Page and fields with the words',
    defaultMessage: 'Page and fields with the words',
  },
  action: { id: 'Action', defaultMessage: 'Action' },
  isNew: { id: 'new', defaultMessage: 'new' },
  title: { id: 'Title', defaultMessage: 'Title' },
  description: { id: 'Description', defaultMessage: 'Description' },
  keywords: { id: 'Tags', defaultMessage: 'Tags' },
  body: { id: 'Text', defaultMessage: 'Text' },
  pinned: { id: 'pinned', defaultMessage: 'pinned' },
  halfLife: {
    id: 'half-life: {days} days',
    defaultMessage: 'half-life: {days} days',
  },
  otherWords: {
    id: 'found by synonyms or stems',
    defaultMessage: 'found by synonyms or stems',
  },
  byWords: { id: 'by words {place}', defaultMessage: 'by words {place}' },
  byMeaning: {
    id: 'by meaning {place}, similarity {similarity}',
    defaultMessage: 'by meaning {place}, similarity {similarity}',
  },
  pin: { id: 'Pin', defaultMessage: 'Pin' },
  tryQuery: { id: 'Try a query', defaultMessage: 'Try a query' },
  tryHelp: {
    id: 'Preview the order of results with the settings of the other tab before you save them.',
    defaultMessage:
      'Preview the order of results with the settings of the other tab before you save them.',
  },
  query: { id: 'Query', defaultMessage: 'Query' },
  try: { id: 'Try', defaultMessage: 'Try' },
  section: { id: 'Search in', defaultMessage: 'Search in' },
  wholeSite: { id: 'Whole site', defaultMessage: 'Whole site' },
  nothing: {
    id: 'No pages were found.',
    defaultMessage: 'No pages were found.',
  },
  failed: {
    id: 'The preview has failed.',
    defaultMessage: 'The preview has failed.',
  },
  pinPage: { id: 'Pin a page', defaultMessage: 'Pin a page' },
  forSearches: { id: 'For searches for', defaultMessage: 'For searches for' },
  page: { id: 'Page', defaultMessage: 'Page' },
  browse: { id: 'Browse', defaultMessage: 'Browse' },
  addSynonym: { id: 'Add a synonym', defaultMessage: 'Add a synonym' },
  word: { id: 'Word', defaultMessage: 'Word' },
  meansSame: { id: 'Means the same as', defaultMessage: 'Means the same as' },
  add: {
    id: 'Add to the form and try',
    defaultMessage: 'Add to the form and try',
  },
  idlePins: {
    id: 'Pins that do not apply today',
    defaultMessage: 'Pins that do not apply today',
  },
  ended: { id: 'ended on {day}', defaultMessage: 'ended on {day}' },
  begins: { id: 'begins on {day}', defaultMessage: 'begins on {day}' },
  findings: {
    id: 'Lines without an effect',
    defaultMessage: 'Lines without an effect',
  },
  searches: { id: 'Searches', defaultMessage: 'Searches' },
  searchesHelp: {
    id: 'Searches of the last {days} days. Words that members have searched for are listed if three of them did so on one day.',
    defaultMessage:
      'Searches of the last {days} days. Words that members have searched for are listed if three of them did so on one day.',
  },
  allWeeks: { id: 'All weeks', defaultMessage: 'All weeks' },
  week: { id: 'Week from {day}', defaultMessage: 'Week from {day}' },
  csv: { id: 'Download as CSV', defaultMessage: 'Download as CSV' },
  none: { id: 'None so far.', defaultMessage: 'None so far.' },
  top: { id: 'Top searches', defaultMessage: 'Top searches' },
  without_results: {
    id: 'Searches without results',
    defaultMessage: 'Searches without results',
  },
  corrected: { id: 'Corrected searches', defaultMessage: 'Corrected searches' },
  unopened: {
    id: 'Searches without an opened hit',
    defaultMessage: 'Searches without an opened hit',
  },
  compare: {
    id: 'Compare the most frequent searches',
    defaultMessage: 'Compare the most frequent searches',
  },
  compareHelp: {
    id: 'Shows what the settings in the form change for the hits of anonymous visitors. Nothing is saved.',
    defaultMessage:
      'Shows what the settings in the form change for the hits of anonymous visitors. Nothing is saved.',
  },
  compared: { id: 'Compared searches', defaultMessage: 'Compared searches' },
  first: { id: 'Another first hit', defaultMessage: 'Another first hit' },
  five: {
    id: 'Other first five hits',
    defaultMessage: 'Other first five hits',
  },
  total: {
    id: 'Another number of hits',
    defaultMessage: 'Another number of hits',
  },
  left: {
    id: 'Not compared for lack of time',
    defaultMessage: 'Not compared for lack of time',
  },
  search: { id: 'Search', defaultMessage: 'Search' },
  hits: { id: 'Hits', defaultMessage: 'Hits' },
  yes: { id: 'yes', defaultMessage: 'yes' },
});
