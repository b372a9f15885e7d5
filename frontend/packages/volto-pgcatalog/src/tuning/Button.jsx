import { FormattedMessage } from 'react-intl';

/** A button with a message, which does not send the form around it; `about` is the line that it stands beside. */
const Button = ({ label, about, className = 'basic', ...props }) => (
  <button type="button" className={`ui small ${className} button`} {...props}>
    <FormattedMessage {...label} />
    {about && <span className="visually-hidden">: {about}</span>}
  </button>
);

export default Button;
