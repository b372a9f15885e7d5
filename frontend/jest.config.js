// The tests of the add-ons here, by the jest that Volto brings, on Volto's own sources.
const volto = '<rootDir>/node_modules/@plone/volto';

module.exports = {
  testEnvironment: 'jsdom',
  roots: ['<rootDir>/packages'],
  transform: { '^.+\\.(js|jsx|ts|tsx)$': 'babel-jest' },
  transformIgnorePatterns: ['/node_modules/(?!@plone/)'],
  moduleNameMapper: {
    '\\.(css|less|scss|svg)$': '<rootDir>/jest-file.js',
    '^@plone/volto/(.*)$': `${volto}/src/$1`,
  },
  globals: { __CLIENT__: true, __SERVER__: false, __DEVELOPMENT__: false },
};
