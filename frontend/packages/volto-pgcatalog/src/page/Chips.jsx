// The chosen values of a search page or of a search block, each of which a click removes.
import { FormattedMessage } from 'react-intl';
import { Link } from 'react-router-dom';
import messages from './messages';

const Remover = ({ to, onClick, ...props }) =>
  to ? (
    <Link rel="nofollow" to={to} {...props} />
  ) : (
    <button onClick={onClick} type="button" {...props} />
  );

/** `chips`: `[{ title, value, to }]`, or `onClick` instead of the address `to`; `all`: one of these, which removes all. */
const Chips = ({ all, chips, id = 'pgcatalog-chosen' }) =>
  chips.length > 0 && (
    <section aria-labelledby={id}>
      <h2 className="visually-hidden" id={id}>
        <FormattedMessage {...messages.chosen} />
      </h2>
      <ul className="pgcatalog-chips">
        {chips.map(({ title, value, ...remover }) => (
          <li key={`${title} ${value}`}>
            <Remover className="ui basic label" {...remover}>
              <span className="visually-hidden">
                <FormattedMessage {...messages.remove} />{' '}
              </span>
              {title}: <strong dir="auto">{value}</strong>{' '}
              <span aria-hidden="true">×</span>
            </Remover>
          </li>
        ))}
        {chips.length > 1 && (
          <li>
            <Remover className="pgcatalog-remove-all" {...all}>
              <FormattedMessage {...messages.removeAll} />
            </Remover>
          </li>
        )}
      </ul>
    </section>
  );

export default Chips;
