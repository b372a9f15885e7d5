import reducers from '@plone/volto/reducers';

export default reducers;
