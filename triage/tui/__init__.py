"""The screens. They show what the core decided and decide nothing themselves."""
