// The pages of the preview: the place of each with the settings in the form and with the saved ones, and its reasons.
import { FormattedMessage } from 'react-intl';
import UniversalLink from '@plone/volto/components/manage/UniversalLink/UniversalLink';
import { flattenToAppURL } from '@plone/volto/helpers/Url/Url';
import Button from './Button';
import messages from './messages';

const Before = ({ place, before }) => {
  if (before === null) {
    return (
      <span className="ui mini label">
        <FormattedMessage {...messages.isNew} />
      </span>
    );
  }
  const sign = place < before ? '▲' : place > before ? '▼' : '';
  return (
    <>
      {before} <span aria-hidden="true">{sign}</span>
    </>
  );
};

const Reasons = ({ hit }) => {
  const { by_words: words, by_meaning: meaning, shares } = hit;
  const isFoundByWords = words !== null || meaning === null;
  return (
    <p className="discreet">
      {words !== null && (
        <FormattedMessage {...messages.byWords} values={{ place: words }} />
      )}
      {words !== null && meaning !== null && '; '}
      {meaning !== null && (
        <FormattedMessage
          {...messages.byMeaning}
          values={{
            place: meaning,
            similarity: hit.similarity?.toFixed(3),
          }}
        />
      )}{' '}
      {shares.map(({ part, percent }) => (
        <span className="pgcatalog-share" key={part}>
          <FormattedMessage {...messages[part]} /> {percent} %
        </span>
      ))}
      {hit.is_pinned && (
        <span className="ui mini label">
          <FormattedMessage {...messages.pinned} />
        </span>
      )}
      {hit.boost !== 1 && (
        <span className="ui mini label">
          {hit['@type']} × {hit.boost}
        </span>
      )}
      {hit.half_life > 0 && (
        <span className="ui mini label">
          <FormattedMessage
            {...messages.halfLife}
            values={{ days: hit.half_life }}
          />
        </span>
      )}
      {isFoundByWords && !shares.length && !hit.is_pinned && (
        <FormattedMessage {...messages.otherWords} />
      )}
    </p>
  );
};

const Hits = ({ hits, onPin }) => {
  if (!hits) return null;
  if (!hits.length) {
    return (
      <p id="pgcatalog-nothing">
        <FormattedMessage {...messages.nothing} />
      </p>
    );
  }
  return (
    <table className="ui table" id="pgcatalog-hits">
      <thead>
        <tr>
          <th scope="col">
            <FormattedMessage {...messages.rank} />
          </th>
          <th scope="col">
            <FormattedMessage {...messages.before} />
          </th>
          <th scope="col">
            <FormattedMessage {...messages.found} />
          </th>
          <th scope="col">
            <span className="visually-hidden">
              <FormattedMessage {...messages.action} />
            </span>
          </th>
        </tr>
      </thead>
      <tbody>
        {hits.map((hit) => (
          <tr key={hit.UID}>
            <td>
              <span className="pgcatalog-narrow" aria-hidden="true">
                <FormattedMessage {...messages.rank} />{' '}
              </span>
              {hit.place}
            </td>
            <td>
              <span className="pgcatalog-narrow" aria-hidden="true">
                <FormattedMessage {...messages.before} />{' '}
              </span>
              <Before place={hit.place} before={hit.place_before} />
            </td>
            <td className="pgcatalog-wide">
              <UniversalLink href={flattenToAppURL(hit['@id'])}>
                <span dir="auto">{hit.title}</span>
              </UniversalLink>
              <Reasons hit={hit} />
            </td>
            <td>
              {!hit.is_pinned && (
                <Button
                  about={hit.title}
                  label={messages.pin}
                  onClick={() => onPin(hit.UID)}
                />
              )}
            </td>
          </tr>
        ))}
      </tbody>
    </table>
  );
};

export default Hits;
