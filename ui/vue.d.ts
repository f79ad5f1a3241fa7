// For tools that do not read single-file components; vue-tsc does, and looks at the files themselves.
declare module "*.vue" {
  import type { Component } from "vue";
  const component: Component;
  export default component;
}
