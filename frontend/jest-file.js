// Stands for what is no JavaScript: styles and pictures.
module.exports = {};
