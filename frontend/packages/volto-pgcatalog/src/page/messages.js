import { defineMessages } from 'react-intl';

// Extracted by Volto; those that Volto itself has are translated there.
export default defineMessages({
  search: { id: 'Search', defaultMessage: 'Search' },
  searchSite: { id: 'Search Site', defaultMessage: 'Search Site' },
  results: { id: 'Search results', defaultMessage: 'Search results' },
  resultsFor: {
    id: 'Search results for {term}',
    defaultMessage: 'Search results for {term}',
  },
  help: {
    id: 'Put a minus or NOT before a word to exclude it: garden -fence, garden NOT fence. Quotes find a phrase: "garden fence".',
    defaultMessage:
      'Put a minus or NOT before a word to exclude it: garden -fence, garden NOT fence. Quotes find a phrase: "garden fence".',
  },
  hits: {
    id: '{number, plural, one {# result} other {# results}}',
    defaultMessage: '{number, plural, one {# result} other {# results}}',
  },
  manyHits: {
    id: 'More than {number, number} results',
    defaultMessage: 'More than {number, number} results',
  },
  sortBy: { id: 'Sort by', defaultMessage: 'Sort by' },
  perPage: { id: 'Results per page', defaultMessage: 'Results per page' },
  filter: { id: 'Filter the results', defaultMessage: 'Filter the results' },
  chosen: { id: 'Selected filters', defaultMessage: 'Selected filters' },
  remove: { id: 'Remove the filter:', defaultMessage: 'Remove the filter:' },
  removeAll: { id: 'Remove all filters', defaultMessage: 'Remove all filters' },
  apply: { id: 'Apply', defaultMessage: 'Apply' },
  close: { id: 'Close', defaultMessage: 'Close' },
  show: { id: 'Show the results', defaultMessage: 'Show the results' },
  more: { id: 'Show more', defaultMessage: 'Show more' },
  findValue: { id: 'Find in {title}', defaultMessage: 'Find in {title}' },
  located: { id: 'Located in', defaultMessage: 'Located in' },
  tags: { id: 'Tags', defaultMessage: 'Tags' },
  moreTags: { id: '{number} more', defaultMessage: '{number} more' },
  similar: { id: 'Similar pages', defaultMessage: 'Similar pages' },
  pinned: { id: 'Recommended', defaultMessage: 'Recommended' },
  published: { id: 'published {date}', defaultMessage: 'published {date}' },
  modified: {
    id: 'last modified {date}',
    defaultMessage: 'last modified {date}',
  },
  pages: { id: 'Pages of results', defaultMessage: 'Pages of results' },
  previous: { id: 'Previous page', defaultMessage: 'Previous page' },
  next: { id: 'Next page', defaultMessage: 'Next page' },
  corrected: {
    id: 'Showing results for {text}',
    defaultMessage: 'Showing results for {text}',
  },
  instead: {
    id: 'search instead for {text}',
    defaultMessage: 'search instead for {text}',
  },
  meant: { id: 'Did you mean {text}?', defaultMessage: 'Did you mean {text}?' },
  also: { id: 'Related results', defaultMessage: 'Related results' },
  byMeaning: { id: 'Found by meaning', defaultMessage: 'Found by meaning' },
  failedSites: {
    id: 'The search has failed in these sites: {failed}',
    defaultMessage: 'The search has failed in these sites: {failed}',
  },
  tips: { id: 'Search tips', defaultMessage: 'Search tips' },
  addWord: {
    id: 'Add another word: very common words are not searched for alone.',
    defaultMessage:
      'Add another word: very common words are not searched for alone.',
  },
  spelling: {
    id: 'Check the spelling.',
    defaultMessage: 'Check the spelling.',
  },
  otherWords: {
    id: 'Use other words, or fewer of them.',
    defaultMessage: 'Use other words, or fewer of them.',
  },
  noFilters: {
    id: 'Search without filters.',
    defaultMessage: 'Search without filters.',
  },
  all: {
    id: 'See all pages of this site.',
    defaultMessage: 'See all pages of this site.',
  },
  tree: {
    id: 'pgcatalogTree',
    defaultMessage: 'Years and months, or places',
  },
  rss: {
    id: 'Subscribe to an always-updated RSS feed.',
    defaultMessage: 'Subscribe to an always-updated RSS feed.',
  },
  failed: {
    id: 'The search has failed.',
    defaultMessage: 'The search has failed.',
  },
});
