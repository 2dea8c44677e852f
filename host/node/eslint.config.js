import js from '@eslint/js';
import { defineConfig, globalIgnores } from 'eslint/config';
import ts from 'typescript-eslint';

const NODE = [
  'Buffer',
  'console',
  'fetch',
  'Headers',
  'performance',
  'process',
  'setImmediate',
  'setTimeout',
  'URL',
  'WebAssembly',
];
const BROWSER = ['document', 'Event'];
const globals = (names) => Object.fromEntries(names.map((name) => [name, 'readonly']));

export default defineConfig([
  globalIgnores(['dist/', 'src/embedded.ts']),
  js.configs.recommended,
  {
    files: ['src/**/*.ts'],
    extends: [ts.configs.strictTypeChecked, ts.configs.stylisticTypeChecked],
    languageOptions: { parserOptions: { projectService: true } },
    rules: {
      // Places in the component's memory and cases of its enums are known to be there.
      '@typescript-eslint/no-non-null-assertion': 'off',
      // What others throw goes on as it is.
      '@typescript-eslint/only-throw-error': 'off',
      '@typescript-eslint/prefer-promise-reject-errors': 'off',
      // The types do not bind a caller who has no type checker.
      '@typescript-eslint/no-unnecessary-condition': 'off',
    },
  },
  {
    files: ['**/*.js', 'worker'],
    languageOptions: { globals: globals(NODE) },
  },
  { files: ['browser/*.js'], languageOptions: { globals: globals(BROWSER) } },
]);
