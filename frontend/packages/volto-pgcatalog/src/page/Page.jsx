// The search page: rendered on the server, with the address as its only state; it works as links and a form without a script.
import { useEffect, useRef, useState } from 'react';
import { FormattedMessage, useIntl } from 'react-intl';
import { useDispatch, useSelector } from 'react-redux';
import { useHistory } from 'react-router-dom';
import { Container } from 'semantic-ui-react';
import { createPortal } from 'react-dom';
import Helmet from '@plone/volto/helpers/Helmet/Helmet';
import Toolbar from '@plone/volto/components/manage/Toolbar/Toolbar';
import { asyncConnect } from '@plone/volto/helpers/AsyncConnect';
import { queryOf, searchFacets, searchPage } from './data';
import Filters from './Filters';
import Results, { feedOf } from './Results';
import messages from './messages';
import './page.css';

const Heading = ({ heading, shown }) => (
  <h1 className="documentFirstHeading" ref={heading} tabIndex={-1}>
    {shown ? (
      <FormattedMessage
        {...messages.resultsFor}
        values={{ term: <q dir="auto">{shown}</q> }}
      />
    ) : (
      <FormattedMessage {...messages.results} />
    )}
  </h1>
);

const TextField = ({ typed }) => {
  const intl = useIntl();
  const [text, setText] = useState(typed);
  useEffect(() => setText(typed), [typed]);
  return (
    <>
      <div className="ui fluid action input pgcatalog-text">
        <input
          aria-describedby="pgcatalog-help"
          aria-label={intl.formatMessage(messages.searchSite)}
          autoComplete="off"
          dir="auto"
          name="SearchableText"
          onChange={({ target }) => setText(target.value)}
          type="search"
          value={text}
        />
        <button type="submit" className="ui primary button">
          <FormattedMessage {...messages.search} />
        </button>
      </div>
      <p className="discreet" id="pgcatalog-help">
        <FormattedMessage {...messages.help} />
      </p>
    </>
  );
};

export const SearchPage = ({ location }) => {
  const { pathname, search } = location;
  const { data, error, loading } = useSelector((state) => state.pgcatalogPage);
  const dispatch = useDispatch();
  const history = useHistory();
  const intl = useIntl();
  const form = useRef(null);
  const heading = useRef(null);
  const [isClient, setIsClient] = useState(false);
  useEffect(() => setIsClient(true), []);

  const follows = data?.facets_follow;
  useEffect(() => {
    if (follows) dispatch(searchFacets({ pathname, search }));
  }, [dispatch, follows, pathname, search]);

  // The response may remove the link that was followed: then the focus moves to the beginning of the new results.
  const before = useRef(data);
  useEffect(() => {
    if (before.current !== data && document.activeElement === document.body) {
      heading.current?.focus({ preventScroll: true });
      heading.current?.scrollIntoView?.({ block: 'nearest' });
    }
    before.current = data;
  }, [data]);

  const go = () => history.push(`${pathname}${queryOf(form.current)}`);
  const submit = (event) => {
    event.preventDefault();
    go();
  };
  const shown = data?.corrected || data?.text;
  return (
    <Container id="pgcatalog-search" className="view-wrapper">
      <Helmet title={intl.formatMessage(messages.search)}>
        {search && <meta name="robots" content="noindex, follow" />}
        {data?.text && data.links.rss && (
          <link
            href={feedOf(data.links.rss)}
            rel="alternate"
            title="RSS 1.0"
            type="application/rss+xml"
          />
        )}
      </Helmet>
      <article id="content">
        <Heading heading={heading} shown={shown} />
        {error && (
          <p className="ui negative message" role="alert">
            <FormattedMessage {...messages.failed} /> {error.message}
          </p>
        )}
        <form
          action={pathname}
          aria-label={intl.formatMessage(messages.results)}
          method="get"
          onSubmit={submit}
          ref={form}
          role="search"
        >
          {data?.hidden_fields.map(([name, value], number) => (
            <input key={number} type="hidden" name={name} value={value} />
          ))}
          <TextField typed={data?.text || ''} />
          {data && (
            <div className="pgcatalog-columns" aria-busy={loading}>
              <Filters data={data} pathname={pathname} onChange={go} />
              <Results data={data} pathname={pathname} onChange={go} />
            </div>
          )}
        </form>
      </article>
      {isClient &&
        document.getElementById('toolbar') &&
        createPortal(
          <Toolbar
            pathname={pathname}
            hideDefaultViewButtons
            inner={<span />}
          />,
          document.getElementById('toolbar'),
        )}
    </Container>
  );
};

export default asyncConnect([
  {
    key: 'pgcatalogPage',
    // The state has the answer; here it would be in the page twice.
    promise: ({ location, store }) =>
      store.dispatch(searchPage(location)).then(
        () => null,
        () => null,
      ),
  },
])(SearchPage);
