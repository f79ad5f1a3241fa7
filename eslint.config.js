// One set of rules for the pages and their tests.
import js from "@eslint/js";
import prettier from "eslint-config-prettier";
import vue from "eslint-plugin-vue";
import globals from "globals";
import ts from "typescript-eslint";

export default ts.config(
  {
    ignores: ["**/node_modules/", "ui/dist/", "target/", "gen/", "**/*.d.ts", "**/test-results/"],
  },
  js.configs.recommended,
  ts.configs.strictTypeChecked,
  ts.configs.stylisticTypeChecked,
  vue.configs["flat/recommended"],
  {
    languageOptions: {
      globals: { ...globals.browser },
      parserOptions: {
        projectService: { allowDefaultProject: ["eslint.config.js"] },
        tsconfigRootDir: import.meta.dirname,
        extraFileExtensions: [".vue"],
        parser: ts.parser,
      },
    },
    rules: {
      "no-console": "error",
      "no-restricted-imports": [
        "error",
        { patterns: [{ group: ["@tauri-apps/*"], message: "Only ui/kiosk/host.ts talks to the shell." }] },
      ],
      // TypeScript sees undefined names, and knows the types of globals better.
      "no-undef": "off",
      "@typescript-eslint/restrict-template-expressions": ["error", { allowNumber: true }],
      "vue/multi-word-component-names": "off",
      "vue/block-lang": ["error", { script: { lang: "ts" } }],
      "vue/component-api-style": ["error", ["script-setup"]],
      "vue/define-macros-order": "error",
      "vue/no-v-html": "error",
      // The content security policy refuses style attributes that stand in the markup.
      "vue/no-static-inline-styles": "error",
      "vue/no-unused-refs": "error",
    },
  },
  { files: ["ui/kiosk/host.ts"], rules: { "no-restricted-imports": "off" } },
  { files: ["**/*.js"], extends: [ts.configs.disableTypeChecked] },
  prettier,
);
