// The character device of NVIDIA's second module, with a major that the kernel gives.
#include <linux/fs.h>
#include <linux/module.h>

static int uvm;

static const struct file_operations operations = {
	.owner = THIS_MODULE,
};

static int __init begin(void)
{
	uvm = register_chrdev(0, "nvidia-uvm", &operations);
	return uvm < 0 ? uvm : 0;
}

static void __exit end(void)
{
	unregister_chrdev(uvm, "nvidia-uvm");
}

module_init(begin);
module_exit(end);
MODULE_DESCRIPTION("The device number of NVIDIA's second module, for tests");
MODULE_LICENSE("GPL");
