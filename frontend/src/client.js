import start from '@plone/volto/start-client';

start();
